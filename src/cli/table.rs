//! Text for people: aligned columns, and nothing that could move a terminal's cursor.

use std::fmt;

/// A text with control characters, and characters that turn the direction of writing, escaped.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// As [`printable`], line by line; line ends and tabs stay.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| line.split('\t').map(printable).collect::<Vec<_>>().join("\t")).collect();
    lines.join("\n")
}

/// Rows of cells below a head, as wide as their content.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with only its head.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    /// One more row; an empty cell is shown as `-`.
    pub fn row(&mut self, cells: Vec<String>) {
        let shown = |cell: String| if cell.is_empty() { "-".to_owned() } else { printable(&cell) };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:width$}  "));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// `name:  value` lines, the values below each other.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    rows: Vec<(&'static str, String)>,
}

impl Sheet {
    /// One more line; an empty value is shown as `-`.
    pub fn line(&mut self, name: &'static str, value: impl AsRef<str>) {
        let value = printable(value.as_ref());
        self.rows.push((name, if value.is_empty() { "-".to_owned() } else { value }));
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|(name, _)| name.len() + 1).max().unwrap_or_default();
        for (name, value) in &self.rows {
            writeln!(f, "{:width$}  {value}", format!("{name}:"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_line_up_and_trailing_blanks_do_not_exist() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row(vec!["ä long name".into(), "1".into()]);
        table.row(vec![String::new(), "\u{1b}[31m".into()]);
        assert_eq!(table.to_string(), "NAME         N\nä long name  1\n-            \\u{1b}[31m\n");
        let mut sheet = Sheet::default();
        sheet.line("a", "1");
        sheet.line("long", "");
        assert_eq!(sheet.to_string(), "a:     1\nlong:  -\n");
    }

    #[test]
    fn odd_names_are_shown_and_do_nothing() {
        assert_eq!(printable("$(touch pwned);id # 'x' \"y\" ü"), "$(touch pwned);id # 'x' \"y\" ü");
        assert_eq!(printable("a\nb\u{202e}c\u{9b}"), "a\\nb\\u{202e}c\\u{9b}");
        assert_eq!(printable_lines("<a>\n\t<b/>\u{7}\n</a>\n"), "<a>\n\t<b/>\\u{7}\n</a>");
    }

    proptest! {
        #[test]
        fn nothing_printable_holds_a_control_character(text in any::<String>()) {
            prop_assert!(!printable(&text).chars().any(char::is_control));
        }
    }
}
