//! Why a function failed.

use std::fmt;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The source is not JavaScript, or not a function.
    Syntax,
    /// No function has this name.
    UnknownFunction,
    /// The function threw an exception.
    Exception,
    /// The function ran longer than allowed.
    Time,
    /// The function needed more memory than allowed.
    Memory,
    /// Calls within calls went deeper than allowed.
    Stack,
    /// The function returned something else than a function of its sort has to.
    Result,
    /// A value that was passed in is not JSON.
    Argument,
}

impl ErrorKind {
    /// Whether the session begins anew after an error of this kind.
    pub(crate) const fn spoils_the_engine(self) -> bool {
        matches!(self, Self::Time | Self::Memory | Self::Stack)
    }
}

/// Why a function failed, with what Riak tells of such a failure: a line, a message and the
/// source's text in that line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What went wrong, such as `ReferenceError: zork is not defined`.
    pub message: String,
    /// The line of the source in which it went wrong; 0 where there is none.
    pub line: u32,
    /// The text of that line, or `unknown`, as in Riak.
    pub source: String,
}

/// The maximum length of a message or a source line in an error.
pub(crate) const TEXT_BYTES_MAX: usize = 500;

impl ScriptError {
    /// Creates an error without a place in the source.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: shorten(message.into()), line: 0, source: "unknown".to_owned() }
    }

    /// Creates an error in a line of the source.
    pub(crate) fn at(kind: ErrorKind, message: String, line: u32, source: &str) -> Self {
        let text = (line > 0).then(|| source.lines().nth(line as usize - 1)).flatten().map(str::trim);
        let text = text.filter(|text| !text.is_empty()).unwrap_or("unknown");
        Self { kind, message: shorten(message), line, source: shorten(text.to_owned()) }
    }

    /// The error as Riak's clients see it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "lineno": self.line, "message": self.message, "source": self.source })
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "{} (line {line})", self.message),
        }
    }
}

impl std::error::Error for ScriptError {}

/// Cuts a text to at most [`TEXT_BYTES_MAX`].
pub(crate) fn shorten(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(cut(&text, TEXT_BYTES_MAX).len());
        text.push_str("...");
    }
    text
}

/// The beginning of a text: at most `bytes_max`, and whole characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut len = text.len().min(bytes_max);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}
