//! How a command prints its result: text for people, or JSON.
//!
//! If the reader of standard output goes away (`ombak kv list b | head`), the program ends
//! silently.

use super::failure::Failure;
use serde_json::Value;
use std::io::{self, Write};

/// The form in which a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Whether to print JSON instead of text.
    pub json: bool,
}

impl Output {
    /// Prints a result in the requested form.
    pub fn result(self, json: &Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.line(&json.to_string()) } else { self.line(&text()) }
    }

    /// Prints a line.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        written(writeln!(out, "{text}").and_then(|()| out.flush()))
    }

    /// Prints bytes unchanged.
    pub fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        written(out.write_all(bytes).and_then(|()| out.flush()))
    }
}

#[expect(clippy::disallowed_methods, reason = "whoever read the output has left; as other programs do, leave too")]
fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => Err(Failure::new(format!("cannot write to standard output: {e}"))),
    }
}

/// A name as people see it. Bytes that are not printable text are escaped.
pub fn shown(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => name.escape_ascii().to_string(),
    }
}
