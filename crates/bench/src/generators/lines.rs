//! A file with one key per line, which all workers read together (`file_line_bin`,
//! docs/riak/basho-bench.md §2).

use super::draw::Exhausted;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The longest line, in bytes. Riak accepts no longer keys.
const LINE_BYTES_MAX: u64 = 65_536;

/// The open file with its read position.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    repeat: bool,
    file: Mutex<BufReader<File>>,
    failure: OnceLock<String>,
}

impl Lines {
    /// Opens a file that is not empty.
    pub(super) fn open(path: &Path, repeat: bool) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        if file.fill_buf()?.is_empty() {
            return Err(io::Error::other("the file is empty; it should have a key on each line"));
        }
        Ok(Self { path: path.to_owned(), repeat, file: Mutex::new(file), failure: OnceLock::new() })
    }

    /// Whether this is the file `path` with this value of `repeat`.
    pub(super) fn has_source(&self, path: &Path, repeat: bool) -> bool {
        self.path == path && self.repeat == repeat
    }

    /// The error that ended reading before the end of the file.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Appends the next line without its line end.
    pub(super) fn append(&self, out: &mut Vec<u8>) -> Result<(), Exhausted> {
        let mut file = self.file.lock();
        let read = match append_line(&mut file, out) {
            Ok(0) if self.repeat => file.rewind().and_then(|()| append_line(&mut file, out)),
            read => read,
        };
        match read {
            Ok(0) => Err(Exhausted),
            Ok(_) => {
                if out.last() == Some(&b'\n') {
                    out.pop();
                }
                Ok(())
            }
            Err(error) => {
                self.failure.get_or_init(|| format!("{}: {error}", self.path.display()));
                Err(Exhausted)
            }
        }
    }
}

fn append_line(file: &mut BufReader<File>, out: &mut Vec<u8>) -> io::Result<usize> {
    let bytes = file.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', out)?;
    if bytes as u64 > LINE_BYTES_MAX && out.last() != Some(&b'\n') {
        return Err(io::Error::other(format!("a line is longer than {LINE_BYTES_MAX} bytes, which no key can be")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &[u8], repeat: bool) -> Lines {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        std::fs::write(&path, content).unwrap();
        Lines::open(&path, repeat).unwrap()
    }

    fn next(lines: &Lines) -> Result<Vec<u8>, Exhausted> {
        let mut out = Vec::new();
        lines.append(&mut out).map(|()| out)
    }

    #[test]
    fn lines_come_in_order_and_end_or_begin_again() {
        let once = lines(b"a\n\nc", false);
        assert_eq!([next(&once), next(&once), next(&once)], [Ok(b"a".to_vec()), Ok(vec![]), Ok(b"c".to_vec())]);
        assert_eq!(next(&once), Err(Exhausted));
        assert_eq!(next(&once), Err(Exhausted));
        assert_eq!(once.failure(), None);
        let again = lines(b"a\nb\n", true);
        for key in [b"a", b"b", b"a", b"b", b"a"] {
            assert_eq!(next(&again), Ok(key.to_vec()));
        }
    }

    #[test]
    fn a_line_that_no_key_can_be_ends_it_and_says_so() {
        let longest = vec![b'k'; LINE_BYTES_MAX as usize];
        assert_eq!(next(&lines(&longest, true)), Ok(longest.clone()));
        let long = lines(&[longest.as_slice(), b"k\n"].concat(), true);
        assert_eq!(next(&long), Err(Exhausted));
        assert!(long.failure().unwrap().contains("longer than 65536 bytes"));
    }

    #[test]
    fn an_empty_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        std::fs::write(&path, b"").unwrap();
        assert!(Lines::open(&path, true).unwrap_err().to_string().contains("empty"));
        assert!(Lines::open(&dir.path().join("none"), true).is_err());
    }
}
