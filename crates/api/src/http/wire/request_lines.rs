//! The header lines of a request, as positions in its head. Hot.
//!
//! Parsing a head copies no line and builds no table. To answer a request, about a dozen names are
//! looked up, and a request has few of them. So a set of 64 marks shows for most names that no line
//! has them, and only the others are searched for.

use bytes::Bytes;
use smallvec::SmallVec;
use std::borrow::Cow;

/// The usual number of header lines in a request. More lines need an allocation.
const LINES_USUAL: usize = 12;

/// The name of a header of requests, in lower case.
#[derive(Clone, Copy, Debug)]
pub struct LineName {
    text: &'static str,
    mark: u64,
}

impl LineName {
    /// Creates a name from its text, which must be in lower case.
    pub const fn new(text: &'static str) -> Self {
        Self { text, mark: mark(text.as_bytes()) }
    }

    fn names(self, line: &[u8]) -> bool {
        line.eq_ignore_ascii_case(self.text.as_bytes())
    }
}

/// The names that are looked up in requests.
#[allow(missing_docs, reason = "the names say it")]
pub mod line {
    use super::LineName;

    pub const ACCEPT: LineName = LineName::new("accept");
    pub const ACCEPT_ENCODING: LineName = LineName::new("accept-encoding");
    pub const AUTHORIZATION: LineName = LineName::new("authorization");
    pub const CONTENT_ENCODING: LineName = LineName::new("content-encoding");
    pub const CONTENT_MD5: LineName = LineName::new("content-md5");
    pub const CONTENT_TYPE: LineName = LineName::new("content-type");
    pub const HOST: LineName = LineName::new("host");
    pub const IF_MATCH: LineName = LineName::new("if-match");
    pub const IF_MODIFIED_SINCE: LineName = LineName::new("if-modified-since");
    pub const IF_NONE_MATCH: LineName = LineName::new("if-none-match");
    pub const IF_RANGE: LineName = LineName::new("if-range");
    pub const IF_UNMODIFIED_SINCE: LineName = LineName::new("if-unmodified-since");
    pub const LINK: LineName = LineName::new("link");
    pub const ORIGIN: LineName = LineName::new("origin");
    pub const RANGE: LineName = LineName::new("range");
    pub const REFERER: LineName = LineName::new("referer");
    pub const SEC_FETCH_SITE: LineName = LineName::new("sec-fetch-site");
    pub const X_RIAK_IF_NOT_MODIFIED: LineName = LineName::new("x-riak-if-not-modified");
    pub const X_RIAK_VCLOCK: LineName = LineName::new("x-riak-vclock");
}

/// The mark of a name, without regard to case: one bit of 64. Different names may have the same
/// mark.
const fn mark(name: &[u8]) -> u64 {
    /// The bit that turns an upper-case letter into lower case.
    const LOWER: u8 = 0x20;
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 1 };
    1 << ((name.len() + 7 * (*first | LOWER) as usize + 13 * (*last | LOWER) as usize) % 64)
}

/// The position of a line in its head.
#[derive(Clone, Copy, Debug)]
struct Line {
    name_at: u32,
    value_at: u32,
    value_bytes: u32,
    name_bytes: u16,
}

/// The header lines of one request. They share the memory of its head.
#[derive(Clone, Debug, Default)]
pub struct RequestLines {
    head: Bytes,
    lines: SmallVec<[Line; LINES_USUAL]>,
    /// The marks of all names.
    marks: u64,
}

/// A line is not part of the head, or its position or length does not fit into the number type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine;

impl RequestLines {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line of `head`. Its name and its value must be slices of `head`.
    #[inline]
    pub fn push(&mut self, head: &[u8], name: &[u8], value: &[u8]) -> Result<(), BadLine> {
        let place = |part: &[u8]| {
            let at = (part.as_ptr() as usize).checked_sub(head.as_ptr() as usize);
            at.filter(|at| at + part.len() <= head.len()).and_then(|at| u32::try_from(at).ok()).ok_or(BadLine)
        };
        self.lines.push(Line {
            name_at: place(name)?,
            value_at: place(value)?,
            value_bytes: u32::try_from(value.len()).map_err(|_| BadLine)?,
            name_bytes: u16::try_from(name.len()).map_err(|_| BadLine)?,
        });
        self.marks |= mark(name);
        Ok(())
    }

    /// Attaches the head whose lines were added. From now on the lines are read from it.
    pub fn attach(&mut self, head: Bytes) {
        self.head = head;
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// The value of the first line with this name.
    #[inline]
    pub fn get(&self, name: LineName) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Does the same as [`Self::get`] for values of visible ASCII characters, spaces and tabs. Any
    /// other value is `None`.
    pub fn get_text(&self, name: LineName) -> Option<&str> {
        let value = self.get(name)?;
        let is_text = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        std::str::from_utf8(value).ok().filter(|_| is_text)
    }

    /// Whether there is a line with this name.
    #[inline]
    pub fn contains(&self, name: LineName) -> bool {
        self.get(name).is_some()
    }

    /// The values of all lines with this name, in their order.
    #[inline]
    pub fn all(&self, name: LineName) -> impl Iterator<Item = &[u8]> {
        // If no line has the mark of the name, no line has the name.
        let lines = if self.marks & name.mark == 0 { &[] } else { &self.lines[..] };
        lines.iter().filter(move |line| name.names(self.name(line))).map(|line| self.value(line))
    }

    /// The values of all lines with this name, joined with `, ` (RFC 9110 §5.2).
    #[inline]
    pub fn joined(&self, name: LineName) -> Option<Cow<'_, [u8]>> {
        let mut values = self.all(name);
        let first = values.next()?;
        Some(join(first, values))
    }

    /// Does the same as [`Self::joined`]. If there is one line, the value shares the memory of the
    /// head.
    pub fn joined_bytes(&self, name: LineName) -> Option<Bytes> {
        self.joined(name).map(|value| self.to_bytes(value))
    }

    /// The names for which `is_wanted` returns true, in lower case and in the order of their first
    /// lines, each with its joined values. `is_wanted` must ignore case.
    pub fn wanted(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<(String, Bytes)> {
        let wanted = self.lines.iter().filter(|line| is_wanted(self.name(line))).enumerate();
        let mut named: Vec<(usize, String, &Line)> =
            wanted.map(|(at, line)| (at, self.lower_name(line), line)).collect();
        // Sorting groups the lines with the same name and keeps their order. It avoids time that
        // grows with the square of the number of lines.
        named.sort_by(|(_, one, _), (_, other, _)| one.cmp(other));
        let mut groups: Vec<_> = named.chunk_by(|(_, one, _), (_, other, _)| one == other).collect();
        groups.sort_by_key(|group| group[0].0);
        let joined = |group: &[(usize, String, &Line)]| {
            let mut values = group.iter().map(|(_, _, line)| self.value(line));
            let first = values.next().unwrap_or_default();
            (group[0].1.clone(), self.to_bytes(join(first, values)))
        };
        groups.into_iter().map(joined).collect()
    }

    fn lower_name(&self, line: &Line) -> String {
        // A name is a token, so it is ASCII.
        String::from_utf8_lossy(self.name(line)).to_ascii_lowercase()
    }

    fn name(&self, line: &Line) -> &[u8] {
        let at = line.name_at as usize;
        self.head.get(at..at + usize::from(line.name_bytes)).unwrap_or_default()
    }

    fn value(&self, line: &Line) -> &[u8] {
        let at = line.value_at as usize;
        self.head.get(at..at + line.value_bytes as usize).unwrap_or_default()
    }

    fn to_bytes(&self, value: Cow<'_, [u8]>) -> Bytes {
        match value {
            Cow::Borrowed(slice) if !slice.is_empty() => self.head.slice_ref(slice),
            Cow::Borrowed(_) => Bytes::new(),
            Cow::Owned(copy) => Bytes::from(copy),
        }
    }
}

/// Joins several values.
fn join<'v>(first: &'v [u8], others: impl Iterator<Item = &'v [u8]>) -> Cow<'v, [u8]> {
    let mut joined = Cow::Borrowed(first);
    for value in others {
        let joined = joined.to_mut();
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(value);
    }
    joined
}

#[cfg(test)]
impl RequestLines {
    /// Lines with these names and values, in a head that has no other lines.
    pub fn sample(pairs: &[(&str, &str)]) -> Self {
        let text: String = pairs.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let (head, mut lines, mut at) = (Bytes::from(text), Self::new(), 0);
        for (name, value) in pairs {
            let value_at = at + name.len() + 2;
            let value_end = value_at + value.len();
            lines.push(&head, &head[at..at + name.len()], &head[value_at..value_end]).expect("a line of the head");
            at = value_end + 2;
        }
        lines.attach(head);
        lines
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use http::{HeaderMap, HeaderName, HeaderValue};
    use proptest::prelude::*;

    #[test]
    fn lines_of_one_name_read_as_one_whatever_their_case() {
        let lines = RequestLines::sample(&[("Link", "a"), ("HOST", "h"), ("link", "b"), ("Range", "")]);
        assert_eq!(lines.get(line::LINK), Some(&b"a"[..]));
        assert_eq!(lines.joined(line::LINK).as_deref(), Some(&b"a, b"[..]));
        assert_eq!(lines.joined_bytes(line::LINK).as_deref(), Some(&b"a, b"[..]));
        assert_eq!(
            (lines.joined_bytes(line::RANGE).as_deref(), lines.get_text(line::HOST)),
            (Some(&b""[..]), Some("h"))
        );
        assert_eq!((lines.get(line::ACCEPT), lines.joined(line::ACCEPT), lines.len()), (None, None, 4));
    }

    #[test]
    fn a_value_beyond_ascii_is_no_text() {
        let lines = RequestLines::sample(&[("Host", "\u{e9}"), ("Origin", "a\tb")]);
        assert!(lines.contains(line::HOST));
        assert_eq!((lines.get_text(line::HOST), lines.get_text(line::ORIGIN)), (None, Some("a\tb")));
    }

    #[test]
    fn a_line_of_another_head_is_refused() {
        let mut lines = RequestLines::new();
        assert_eq!(lines.push(b"Host: a", b"Host", b"a"), Err(BadLine));
    }

    fn name() -> impl Strategy<Value = String> {
        const KNOWN: [&str; 8] =
            ["accept", "host", "link", "if-match", "x-riak-vclock", "x-riak-meta-a", "x-riak-meta-b", "range"];
        prop_oneof![
            3 => proptest::sample::select(&KNOWN[..]).prop_map(str::to_owned),
            1 => proptest::sample::select(&KNOWN[..]).prop_map(str::to_ascii_uppercase),
            2 => "[a-zA-Z_!-]{1,6}".prop_filter("a token", |name| !name.contains(['"', '(', ')', ','])),
        ]
    }

    proptest! {
        #[test]
        fn lines_are_found_as_a_map_finds_them(pairs in proptest::collection::vec((name(), "[a-z,]{0,5}"), 0..40)) {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            let (lines, mut map) = (RequestLines::sample(&pairs), HeaderMap::new());
            for (name, value) in pairs {
                map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
            }
            for name in [line::ACCEPT, line::HOST, line::LINK, line::IF_MATCH, line::X_RIAK_VCLOCK, line::ORIGIN] {
                let expected: Vec<&[u8]> = map.get_all(name.text).iter().map(HeaderValue::as_bytes).collect();
                prop_assert_eq!(lines.all(name).collect::<Vec<_>>(), expected.clone());
                prop_assert_eq!(lines.get(name), expected.first().copied());
                let joined = (!expected.is_empty()).then(|| expected.join(&b", "[..]));
                prop_assert_eq!(lines.joined(name).map(Cow::into_owned), joined);
            }
            let is_wanted = |name: &[u8]| name.len() > 3;
            let names = map.keys().filter(|name| is_wanted(name.as_str().as_bytes()));
            let values = |name: &HeaderName| map.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
            let expected: Vec<(String, Bytes)> =
                names.map(|name| (name.to_string(), Bytes::from(values(name).join(&b", "[..])))).collect();
            prop_assert_eq!(lines.wanted(is_wanted), expected);
        }
    }
}
