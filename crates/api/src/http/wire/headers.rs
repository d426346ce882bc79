//! The header lines of an answer, with Riak's spelling.

use smallvec::SmallVec;

/// The name of a header of answers. It is sent in exactly this spelling, because Riak's clients may
/// compare names with their case (docs/riak/http-api.md §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(&'static str);

/// The names of headers in answers, spelled as recorded from Riak.
#[allow(missing_docs, reason = "the names say it")]
pub mod name {
    use super::Name;

    pub const ACCEPT_RANGES: Name = Name("Accept-Ranges");
    pub const ALLOW: Name = Name("Allow");
    pub const CACHE_CONTROL: Name = Name("Cache-Control");
    pub const CONTENT_ENCODING: Name = Name("Content-Encoding");
    pub const CONTENT_RANGE: Name = Name("Content-Range");
    pub const CONTENT_TYPE: Name = Name("Content-Type");
    pub const ETAG: Name = Name("ETag");
    pub const EXPIRES: Name = Name("Expires");
    pub const LAST_MODIFIED: Name = Name("Last-Modified");
    pub const LINK: Name = Name("Link");
    pub const LOCATION: Name = Name("Location");
    pub const VARY: Name = Name("Vary");
    pub const WWW_AUTHENTICATE: Name = Name("WWW-Authenticate");
    pub const X_RIAK_DELETED: Name = Name("X-Riak-Deleted");
    pub const X_RIAK_VCLOCK: Name = Name("X-Riak-Vclock");
}

/// The usual number of lines with known names in an answer. More lines need an allocation.
const LINES_USUAL: usize = 8;

/// The space for the lines of an object without metadata, in bytes.
const BYTES_USUAL: usize = 448;

/// The header lines of an answer as they will be sent, in the order in which they were set.
///
/// They do not include `Content-Length`, `Transfer-Encoding`, `Connection`, `Date` and `Server`,
/// which the connection writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// The whole lines, each with its line end.
    lines: Vec<u8>,
    /// The positions of the lines with known names.
    known: SmallVec<[Line; LINES_USUAL]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    name: Name,
    start: usize,
    end: usize,
}

impl Headers {
    /// Sets a header, and replaces a header with the same name. An invalid value is ignored.
    pub fn set(&mut self, name: Name, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        if is_value(value) {
            self.remove(name);
            self.write(name, |lines| lines.extend_from_slice(value));
        }
    }

    /// Adds a header that is not set yet. `write` appends its value, which must be valid (see
    /// [`is_value`]).
    pub fn write(&mut self, name: Name, write: impl FnOnce(&mut Vec<u8>)) {
        if self.lines.capacity() == 0 {
            self.lines.reserve(BYTES_USUAL);
        }
        let start = self.lines.len();
        self.lines.extend_from_slice(name.0.as_bytes());
        self.lines.extend_from_slice(b": ");
        write(&mut self.lines);
        self.lines.extend_from_slice(b"\r\n");
        self.known.push(Line { name, start, end: self.lines.len() });
    }

    /// Adds whole lines with other names, each with its line end, as [`push_line`] writes them.
    pub fn append_lines(&mut self, lines: &[u8]) {
        self.lines.extend_from_slice(lines);
    }

    /// The value of a header.
    pub fn get(&self, name: Name) -> Option<&[u8]> {
        let line = self.known.iter().find(|line| line.name == name)?;
        self.lines.get(line.start + name.0.len() + 2..line.end - 2)
    }

    /// Removes a header and returns its value.
    pub fn remove(&mut self, name: Name) -> Option<Vec<u8>> {
        let value = self.get(name)?.to_vec();
        let at = self.known.iter().position(|line| line.name == name)?;
        let gone = self.known.remove(at);
        self.lines.drain(gone.start..gone.end);
        let bytes = gone.end - gone.start;
        for line in self.known.iter_mut().filter(|line| line.start >= gone.end) {
            line.start -= bytes;
            line.end -= bytes;
        }
        Some(value)
    }

    /// All lines, as they will be sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.lines
    }
}

/// Appends a header line with any name. Name and value must be valid (see [`is_name`] and
/// [`is_value`]).
pub fn push_line(lines: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    lines.extend_from_slice(name);
    lines.extend_from_slice(b": ");
    lines.extend_from_slice(value);
    lines.extend_from_slice(b"\r\n");
}

/// Whether bytes are a valid value of a header: visible characters, bytes beyond ASCII, spaces and
/// tabs.
pub fn is_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

/// Whether bytes are a valid name of a header, which is a token (RFC 9110 §5.6.2).
pub fn is_name(bytes: &[u8]) -> bool {
    /// The longest name, in bytes. Too many clients refuse longer names.
    const BYTES_MAX: usize = 64 * 1024 - 1;
    let is_token_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    (1..=BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(is_token_byte)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_header_is_set_once_and_keeps_its_spelling() {
        let mut headers = Headers::default();
        headers.set(name::CONTENT_TYPE, "text/plain");
        headers.set(name::ETAG, "\"a\"");
        headers.append_lines(b"x-riak-index-a_bin: 1\r\n");
        headers.set(name::CONTENT_TYPE, "text/html");
        assert_eq!(headers.get(name::ETAG), Some(&b"\"a\""[..]));
        assert_eq!(headers.get(name::CONTENT_TYPE), Some(&b"text/html"[..]));
        assert_eq!(headers.get(name::VARY), None);
        assert_eq!(headers.as_bytes(), b"ETag: \"a\"\r\nx-riak-index-a_bin: 1\r\nContent-Type: text/html\r\n");
        assert_eq!(headers.remove(name::ETAG), Some(b"\"a\"".to_vec()));
        assert_eq!(headers.remove(name::ETAG), None);
        assert_eq!(headers.as_bytes(), b"x-riak-index-a_bin: 1\r\nContent-Type: text/html\r\n");
    }

    #[test]
    fn a_value_cannot_end_its_line() {
        let mut headers = Headers::default();
        for value in [&b"a\r\nX-Evil: 1"[..], b"a\nb", b"\0", b"\x7f"] {
            headers.set(name::LINK, value);
            assert_eq!(headers.as_bytes(), b"");
        }
        headers.set(name::LINK, b"\xe9\t ok");
        assert_eq!(headers.get(name::LINK), Some(&b"\xe9\t ok"[..]));
    }

    #[test]
    fn names_are_tokens() {
        assert!(is_name(b"X-Riak-Meta-a_b!"));
        for bad in [&b""[..], b"a b", b"a:", b"\xe9", b"a\r"] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
