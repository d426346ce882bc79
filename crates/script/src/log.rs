//! What functions write with `ejsLog`.
//!
//! In Riak, `ejsLog(file, message)` appends to any file of the node. Here it keeps the message for
//! the caller, who writes it to the node's log; the file's name is part of the message.

use crate::error::cut;
use std::collections::VecDeque;

/// The maximum number of messages that a session keeps.
pub const LINES_MAX: usize = 64;

/// The maximum length of a message.
pub const LINE_BYTES_MAX: usize = 512;

/// Messages of functions, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The messages, without those that were dropped.
    pub lines: VecDeque<String>,
    /// How many messages were dropped because more than [`LINES_MAX`] came.
    pub dropped: u64,
}

impl Log {
    /// Keeps the beginning of a message to a file. It takes no more memory than that.
    pub(crate) fn push(&mut self, file: &str, message: &str) {
        let line = format!("{}: {}", cut(file, LINE_BYTES_MAX), cut(message, LINE_BYTES_MAX));
        let line = cut(&line, LINE_BYTES_MAX).to_owned();
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_takes_the_memory_of_its_beginning() {
        let mut log = Log::default();
        log.push("f", &"ü".repeat(1 << 20));
        assert!(log.lines[0].starts_with("f: üü") && log.lines[0].len() <= LINE_BYTES_MAX);
        assert!(log.lines.iter().all(|line| line.capacity() <= LINE_BYTES_MAX));
        log.push(&"f".repeat(1 << 20), "m");
        assert_eq!(log.lines[1], "f".repeat(LINE_BYTES_MAX));
    }
}
