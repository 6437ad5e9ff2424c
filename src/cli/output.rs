//! Where answers and failures go.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::table::{printable, printable_lines};
use crate::model::{Fault, FaultKind};

/// An answer: JSON by serde, and text for people, of the same value.
pub trait Show: Serialize {
    /// The text, with its last line end; control characters of outside texts are escaped.
    fn text(&self) -> String;
}

/// Why a command ends early.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// It failed.
    Fault(Fault),
    /// Nobody reads on: no failure of ours.
    ReaderGone,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// How answers are printed.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// As JSON.
    pub json: bool,
}

impl Output {
    /// Prints an answer.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(self, answer: &impl Show) -> Result<(), Stop> {
        if !self.json {
            return text(&answer.text());
        }
        let shown = serde_json::to_string_pretty(answer).map_err(|err| unprintable(&err))?;
        text(&format!("{shown}\n"))
    }

    /// Prints an answer on one line, and sees to it that the reader has it.
    ///
    /// # Errors
    /// As [`Output::print`].
    pub fn print_line(self, answer: &impl Show) -> Result<(), Stop> {
        if !self.json {
            return text(&answer.text());
        }
        let shown = serde_json::to_string(answer).map_err(|err| unprintable(&err))?;
        text(&format!("{shown}\n"))
    }

    /// Prints a text as it is.
    ///
    /// # Errors
    /// As [`Output::print`].
    pub fn print_document(self, document: &str) -> Result<(), Stop> {
        text(document)
    }

    /// Prints a failure on standard error.
    pub fn failure(self, fault: &Fault) {
        let shown = if self.json { format!("{}\n", json!({ "error": fault })) } else { failure_text(fault) };
        // There is no place left to say that standard error is gone.
        let _ = io::stderr().write_all(shown.as_bytes());
    }
}

/// Writes to standard output.
///
/// # Errors
/// It cannot be written.
pub fn text(text: &str) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(err) if err.kind() == io::ErrorKind::BrokenPipe => Err(Stop::ReaderGone),
        Err(err) => Err(unprintable(&err)),
    }
}

fn unprintable(err: &dyn std::fmt::Display) -> Stop {
    Stop::Fault(Fault::new(FaultKind::Internal, format!("cannot print the answer: {err}")))
}

fn failure_text(fault: &Fault) -> String {
    let mut shown = format!("mdevirtctl: {}\n", printable_lines(&fault.message));
    for reason in fault.reasons() {
        shown.push_str(&format!("  {}\n", printable(&reason)));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_room_has_one_line_per_parent() {
        let list = json!([{"parent": "0000:84:00.0", "reason": "4 of 4 used"}, {"parent": "mtty", "reason": "a\nb"}]);
        let want = "mdevirtctl: no parent fits\n  0000:84:00.0: 4 of 4 used\n  mtty: a\\nb\n";
        for details in [list.clone(), json!({ "parents": list, "class": "VGPU" })] {
            let fault = Fault::new(FaultKind::NoCapacity, "no parent fits").with_details(details);
            assert_eq!(failure_text(&fault), want);
        }
        let other = Fault::new(FaultKind::Internal, "x\u{1b}").with_details(json!({"a": "b"}));
        assert_eq!(failure_text(&other), "mdevirtctl: x\\u{1b}\n");
    }
}
