//! How a command prints its result: text for people, or JSON.
//!
//! If the reader of standard output goes away (`ombak kv list b | head`), the program ends
//! silently.

use super::failure::Failure;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};

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

    /// Prints a line: on a terminal without commands to it.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let escape = if self.json { as_json } else { as_text };
        let shown = if out.is_terminal() { shown_text(text, escape) } else { text.to_owned() };
        written(writeln!(out, "{shown}").and_then(|()| out.flush()))
    }

    /// Prints a value: unchanged, but as a line of text on a terminal.
    pub fn value(self, value: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if !out.is_terminal() {
            return written(out.write_all(value).and_then(|()| out.flush()));
        }
        let text = on_terminal(value);
        written(writeln!(out, "{}", text.strip_suffix('\n').unwrap_or(&text)).and_then(|()| out.flush()))
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
        Ok(text) if !text.chars().any(commands_terminal) => text.to_owned(),
        _ => name.escape_ascii().to_string(),
    }
}

/// A value as a terminal shows it.
fn on_terminal(value: &[u8]) -> String {
    std::str::from_utf8(value).map_or_else(|_| value.escape_ascii().to_string(), |text| shown_text(text, as_text))
}

/// A text of several lines in which all that a terminal would take for a command is escaped. Line
/// ends and tabs stay.
pub fn shown_text(text: &str, escape: fn(char) -> String) -> String {
    let is_command = |c: char| commands_terminal(c) && !matches!(c, '\n' | '\t');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_command(c) { out.push_str(&escape(c)) } else { out.push(c) }
    }
    out
}

/// The escape of a character in a text.
pub fn as_text(c: char) -> String {
    c.escape_default().to_string()
}

/// The escape of a character in a JSON string. All that are escaped have at most 16 bits.
fn as_json(c: char) -> String {
    format!("\\u{:04x}", u32::from(c))
}

/// Whether a character is no text but moves the cursor, changes how text looks, or reverses it.
const fn commands_terminal(c: char) -> bool {
    let is_control = matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}');
    is_control || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_reaches_a_terminal() {
        assert_eq!(shown(b"a\x1b[31m"), "a\\x1b[31m");
        assert_eq!(shown("\u{9b}31m".as_bytes()), "\\xc2\\x9b31m");
        assert_eq!(shown("a\u{202e}b".as_bytes()), "a\\xe2\\x80\\xaeb");
        assert_eq!(shown("Käse".as_bytes()), "Käse");
        assert_eq!(shown_text("a\n\tb\x1b]0;c\x07\u{202e}", as_text), "a\n\tb\\u{1b}]0;c\\u{7}\\u{202e}");
        assert_eq!(shown_text("{\"a\": \"\u{9b}\"}", as_json), "{\"a\": \"\\u009b\"}");
        assert_eq!(on_terminal(b"\xff\x1b"), "\\xff\\x1b");
    }
}
