//! How a command prints its result: text for people, or JSON.
//!
//! If the reader of standard output goes away (`ombak kv list b | head`), a command that prints
//! piece by piece ends silently. A command that prints one result goes on, so that its exit code
//! still says what it found.

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
    /// Prints the result of a command in the requested form. It is no failure if nobody reads it.
    pub fn result(self, json: &Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.document(json) } else { unless_unread(self.line(&text())) }
    }

    /// Prints the JSON document of a command. It is no failure if nobody reads it.
    pub fn document(self, json: &Value) -> Result<(), Failure> {
        unless_unread(self.line(&json.to_string()))
    }

    /// Prints a line: on a terminal without commands to it. The failure [`Failure::unread`] ends
    /// the command if nobody reads it.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let escape = if self.json { as_json } else { as_text };
        let shown = if out.is_terminal() { shown_text(text, escape) } else { text.to_owned() };
        written(writeln!(out, "{shown}").and_then(|()| out.flush()))
    }

    /// Prints what people should know beside the result, on standard error: programs that read the
    /// result do not see it.
    pub fn note(self, text: &str) {
        if !self.json {
            let mut out = io::stderr().lock();
            let shown = if out.is_terminal() { shown_text(text, as_text) } else { text.to_owned() };
            // The result says what counts, so it is no failure if this is not read.
            let _ = writeln!(out, "{shown}");
        }
    }

    /// Prints a text that takes the place of the one before, if standard output is a terminal.
    /// Elsewhere one follows the other, with an empty line between them.
    pub fn picture(self, text: &str) -> Result<(), Failure> {
        /// Moves the cursor to the first line.
        const HOME: &str = "\x1b[H";
        /// Clears the rest of a line.
        const REST_OF_LINE: &str = "\x1b[K\n";
        /// Clears everything below.
        const REST_OF_SCREEN: &str = "\x1b[J";
        let mut out = io::stdout().lock();
        if !out.is_terminal() {
            return written(writeln!(out, "{text}\n").and_then(|()| out.flush()));
        }
        let lines = shown_text(text, as_text).replace('\n', REST_OF_LINE);
        written(write!(out, "{HOME}{lines}{REST_OF_LINE}{REST_OF_SCREEN}").and_then(|()| out.flush()))
    }

    /// Prints a value: unchanged, but as a line of text on a terminal. It fails as a line does.
    pub fn value(self, value: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if !out.is_terminal() {
            return written(out.write_all(value).and_then(|()| out.flush()));
        }
        let text = on_terminal(value);
        written(writeln!(out, "{}", text.strip_suffix('\n').unwrap_or(&text)).and_then(|()| out.flush()))
    }
}

fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::unread()),
        Err(e) => Err(Failure::new(format!("cannot write to standard output: {e}"))),
    }
}

fn unless_unread(printed: Result<(), Failure>) -> Result<(), Failure> {
    printed.or_else(|failure| if failure == Failure::unread() { Ok(()) } else { Err(failure) })
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
