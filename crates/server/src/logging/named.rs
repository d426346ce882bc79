//! Puts the names of nodes into log lines that have their numbers.
//!
//! Libraries and the transport know nodes by their numbers: 16 hexadecimal digits, also for the
//! metadata log of a node. People know nodes by their names. A number whose name is not known
//! stays, and so does the value of a field `node_id`, which is there for its number.

use ombak_cluster::NodeNames;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

/// The length of a number of a node in log lines, in bytes.
const NUMBER_BYTES: usize = 16;

/// What stands before a number that stays, in text and in JSON.
const BEFORE_NUMBERS_THAT_STAY: [&[u8]; 2] = [b"node_id=", b"\"node_id\":\""];

/// An output whose lines have names in place of numbers. Each `write` is one whole message.
pub(super) struct Named<W> {
    pub(super) names: Arc<NodeNames>,
    pub(super) to: W,
}

impl<W: Write> Write for Named<W> {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        self.to.write_all(&named(message, &self.names))?;
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The line with names in place of numbers.
fn named<'a>(line: &'a [u8], names: &NodeNames) -> Cow<'a, [u8]> {
    let mut out: Option<Vec<u8>> = None;
    let (mut copied, mut at) = (0, 0);
    while at < line.len() {
        let word = word_at(&line[at..]);
        let name = number_of(word).and_then(|number| names.name_of(number));
        let stays = || BEFORE_NUMBERS_THAT_STAY.iter().any(|before| line[..at].ends_with(before));
        if let Some(name) = name.filter(|_| !stays()) {
            let out = out.get_or_insert_default();
            out.extend_from_slice(&line[copied..at]);
            out.extend_from_slice(name.as_bytes());
            copied = at + word.len();
        }
        // The byte behind a word does not begin one.
        at += word.len() + 1;
    }
    out.map_or(Cow::Borrowed(line), |mut out| {
        out.extend_from_slice(&line[copied..]);
        Cow::Owned(out)
    })
}

/// The letters and digits at the start of a text.
fn word_at(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

/// The number that a word is, if it is one of a node.
fn number_of(word: &[u8]) -> Option<u64> {
    let is_number =
        word.len() == NUMBER_BYTES && word.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte));
    let text = str::from_utf8(word).ok().filter(|_| is_number)?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let names = NodeNames::default();
        names.learn(0x0123_4567_89ab_cdef, "a@h");
        names.learn(7, "b@h");
        let mut named = Named { names: Arc::new(names), to: Vec::new() };
        assert_eq!(named.write(line.as_bytes()).unwrap(), line.len(), "the message is written as a whole");
        String::from_utf8(named.to).unwrap()
    }

    #[test]
    fn numbers_of_known_nodes_become_names() {
        assert_eq!(shown("peer=0123456789abcdef to 0000000000000007\n"), "peer=a@h to b@h\n");
        assert_eq!(shown(r#"{"target":"0000000000000007"}"#), r#"{"target":"b@h"}"#);
        assert_eq!(shown("T1-N0123456789abcdef"), "T1-N0123456789abcdef", "a part of a word");
        assert_eq!(shown("node 0123456789abcdef"), "node a@h", "at the end");
    }

    #[test]
    fn other_words_stay() {
        for line in [
            "peer=0000000000000008\n",
            "0123456789ABCDEF",
            "0123456789abcdef0",
            "node_id=0123456789abcdef x",
            r#"{"node_id":"0123456789abcdef"}"#,
            "",
        ] {
            assert_eq!(shown(line), line);
        }
    }
}
