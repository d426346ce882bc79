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
    /// Keeps a message.
    pub(crate) fn push(&mut self, mut line: String) {
        line.truncate(cut(&line, LINE_BYTES_MAX).len());
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(line);
    }
}
