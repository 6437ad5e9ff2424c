//! Code as a row of tokens, each with where it stands.

/// A word, `::`, or one other character.
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Line, from 1.
    pub(crate) line: usize,
    /// It stands in code that only tests compile.
    pub(crate) in_test: bool,
    /// Number of `mod x { .. }` around it.
    pub(crate) inline: usize,
}

/// Splits code (see `Source::code`) into tokens.
pub(crate) fn tokens(code: &str, test_file: bool) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(rest) {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            found.push(Token { text: &rest[..length], line: index + 1, in_test: test_file, inline: 0 });
            rest = rest[length..].trim_start();
        }
    }
    mark_test_items(&mut found);
    count_inline_modules(&mut found);
    found
}

fn count_inline_modules(tokens: &mut [Token<'_>]) {
    let mut blocks = Vec::new();
    for at in 0..tokens.len() {
        match tokens[at].text {
            "{" => blocks.push(at >= 2 && tokens[at - 2].text == "mod"),
            "}" => drop(blocks.pop()),
            _ => tokens[at].inline = blocks.iter().filter(|is_module| **is_module).count(),
        }
    }
}

/// Marks the bodies of items below `#[cfg(test)]`.
fn mark_test_items(tokens: &mut [Token<'_>]) {
    const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut at = 0;
    while at < tokens.len() {
        let marked =
            CFG_TEST.iter().enumerate().all(|(n, text)| tokens.get(at + n).is_some_and(|t| t.text == *text));
        if marked {
            at = mark_item(tokens, at + CFG_TEST.len());
        } else {
            at += 1;
        }
    }
}

/// Marks up to the `;` or the closing brace of the item that begins at `at`.
fn mark_item(tokens: &mut [Token<'_>], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get_mut(at) {
        token.in_test = true;
        at += 1;
        match token.text {
            "{" => depth += 1,
            "}" if depth <= 1 => return at,
            "}" => depth -= 1,
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

/// Whether it begins as an identifier or keyword does.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
