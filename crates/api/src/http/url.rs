//! Names in URLs: percent decoding and encoding as in Riak's web server.
//!
//! Names are arbitrary bytes. `+` is a space, in paths as well as in queries (docs/riak/http-api.md
//! §17). `%XX` is a byte. A `%` without two hexadecimal digits behind it stands for itself.

use bytes::Bytes;
use smallvec::SmallVec;
use std::ops::Range;

/// Decodes a part of a URL.
pub fn unquote(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len());
    unquote_into(text, &mut out);
    Bytes::from(out)
}

/// Decodes a part of a URL, appends its bytes to `out`, and returns their position.
fn unquote_into(text: &[u8], out: &mut Vec<u8>) -> Range<usize> {
    let start = out.len();
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = after;
                }
                _ => out.push(b'%'),
            },
            (byte, _) => out.push(*byte),
        }
    }
    start..out.len()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

/// Encodes a name as a part of a URL: letters, digits and `-._~` stay, a space becomes `+`, and
/// every other byte becomes `%XX`.
pub fn quote(name: &[u8]) -> String {
    let mut out = Vec::with_capacity(name.len());
    quote_into(name, &mut out);
    // The encoded name is ASCII, so nothing is replaced.
    String::from_utf8_lossy(&out).into_owned()
}

/// Does the same as [`quote`], but appends to `out`.
pub fn quote_into(name: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
}

/// The number of parts in the path of an object with a bucket type.
const SEGMENTS_USUAL: usize = 6;

/// The usual number of parameters in a query.
const PARAMETERS_USUAL: usize = 4;

/// The decoded parts of a path. Empty parts are ignored: `/buckets//keys` has two parts.
#[derive(Debug, Default)]
pub struct Segments {
    path: Bytes,
    parts: SmallVec<[Part; SEGMENTS_USUAL]>,
}

/// A part of a path.
#[derive(Debug)]
enum Part {
    /// The position in the path of a part that needs no decoding.
    Plain(Range<usize>),
    /// The decoded bytes.
    Decoded(Bytes),
}

impl Segments {
    /// Splits and decodes a path.
    pub fn of(path: Bytes) -> Self {
        let mut at = 0;
        let mut parts = SmallVec::new();
        for part in path.split(|&byte| byte == b'/') {
            let place = at..at + part.len();
            at = place.end + 1;
            match part {
                [] => {}
                part if is_plain(part) => parts.push(Part::Plain(place)),
                part => parts.push(Part::Decoded(unquote(part))),
            }
        }
        Self { path, parts }
    }

    /// The bytes of all parts, in their order.
    pub fn names(&self) -> SmallVec<[&[u8]; SEGMENTS_USUAL]> {
        let names = self.parts.iter().map(|part| match part {
            Part::Plain(place) => &self.path[place.clone()],
            Part::Decoded(bytes) => &bytes[..],
        });
        names.collect()
    }

    /// The part with this index; empty if there is none. It shares the memory of the path if it
    /// needed no decoding.
    pub fn part(&self, at: usize) -> Bytes {
        match self.parts.get(at) {
            Some(Part::Plain(place)) => self.path.slice(place.clone()),
            Some(Part::Decoded(bytes)) => bytes.clone(),
            None => Bytes::new(),
        }
    }
}

/// Whether a part of a URL needs no decoding.
fn is_plain(text: &[u8]) -> bool {
    !text.iter().any(|byte| matches!(byte, b'+' | b'%'))
}

/// The decoded parameters of a query, in their order.
#[derive(Debug, Default)]
pub struct Parameters {
    /// The received query if nothing in it needs decoding, otherwise all decoded names and values.
    text: Bytes,
    /// The positions of names and values in `text`.
    pairs: SmallVec<[(Range<usize>, Range<usize>); PARAMETERS_USUAL]>,
}

impl Parameters {
    /// Splits and decodes a query.
    pub fn read(query: Bytes) -> Self {
        let mut decoded = Vec::new();
        let is_plain = is_plain(&query);
        if !is_plain {
            decoded.reserve(query.len());
        }
        let (mut pairs, mut at) = (SmallVec::new(), 0);
        for pair in query.split(|&byte| byte == b'&') {
            let (start, end) = (at, at + pair.len());
            at = end + 1;
            if pair.is_empty() {
                continue;
            }
            let equals = pair.iter().position(|&byte| byte == b'=');
            let name = start..equals.map_or(end, |equals| start + equals);
            let value = equals.map_or(end..end, |equals| start + equals + 1..end);
            pairs.push(if is_plain {
                (name, value)
            } else {
                (unquote_into(&query[name], &mut decoded), unquote_into(&query[value], &mut decoded))
            });
        }
        Self { text: if is_plain { query } else { Bytes::from(decoded) }, pairs }
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The first value with this name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self.pairs.iter().find(|(place, _)| self.text[place.clone()] == *name);
        found.map(|(_, place)| &self.text[place.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plus_is_a_space_and_a_lone_percent_itself() {
        assert_eq!(&unquote(b"p+q%2Fr%20s%25%zz%4")[..], b"p q/r s%%zz%4");
        assert_eq!(quote("a/b c%é".as_bytes()), "a%2Fb+c%25%C3%A9");
    }

    fn segments(path: &'static str) -> Vec<Vec<u8>> {
        Segments::of(Bytes::from(path)).names().iter().map(|name| name.to_vec()).collect()
    }

    #[test]
    fn empty_segments_vanish() {
        assert_eq!(segments("/buckets//keys/k"), [&b"buckets"[..], b"keys", b"k"]);
        assert_eq!(segments("/a%2Fb/"), [b"a/b"]);
        assert!(segments("/").is_empty());
    }

    #[test]
    fn a_part_that_stands_for_itself_is_not_copied() {
        let path = Bytes::from("/buckets/b+c/keys/k");
        let segments = Segments::of(path.clone());
        assert_eq!([0, 1, 2, 3, 4].map(|at| segments.part(at)), ["buckets", "b c", "keys", "k", ""]);
        assert_eq!(segments.part(3).as_ptr(), path[path.len() - 1..].as_ptr());
    }

    #[test]
    fn the_first_parameter_of_a_name_counts() {
        for (query, r) in [("r=1&&r&x=a+b", &b"1"[..]), ("x=a+b&r&&r=1", b""), ("x=a%20b&r=1=2&", b"1=2")] {
            let parameters = Parameters::read(Bytes::from(query));
            assert_eq!((parameters.get(b"r"), parameters.get(b"x")), (Some(r), Some(&b"a b"[..])), "{query}");
            assert_eq!(parameters.get(b"a"), None);
        }
        let plain = Parameters::read(Bytes::from_static(b"=v&r=1&e"));
        assert_eq!(
            [&b""[..], b"r", b"e", b"v"].map(|name| plain.get(name)),
            [Some(&b"v"[..]), Some(b"1"), Some(b""), None]
        );
        assert!(Parameters::read(Bytes::from_static(b"&&")).is_empty() && !plain.is_empty());
    }

    proptest! {
        #[test]
        fn quoting_is_undone(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(&unquote(quote(&name).as_bytes())[..], &name[..]);
        }
    }
}
