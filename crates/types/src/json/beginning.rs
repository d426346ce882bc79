//! The beginning of a text that may be long. What follows is never written.

use super::Json;
use std::fmt::{self, Write};

/// Takes characters up to a number of them.
struct Beginning {
    text: String,
    chars_left: usize,
}

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            self.chars_left = self.chars_left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(char);
        }
        Ok(())
    }
}

/// The first characters of what `write` writes.
pub fn beginning(chars_max: usize, write: impl FnOnce(&mut dyn Write) -> fmt::Result) -> String {
    let mut beginning = Beginning { text: String::new(), chars_left: chars_max };
    // An error says only that the rest is left out.
    let _ = write(&mut beginning);
    beginning.text
}

impl Json {
    /// The first characters of the value's text.
    pub fn beginning(&self, chars_max: usize) -> String {
        beginning(chars_max, |out| write!(out, "{self}"))
    }
}
