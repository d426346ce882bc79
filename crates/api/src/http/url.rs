//! Names in URLs: percent decoding and encoding as Riak's web server does it.
//!
//! Names are arbitrary bytes. `+` is a space, in paths as well as in queries (docs/riak/http-api.md §17); `%XX` is a byte;
//! a `%` that no two hex digits follow stands for itself.

use bytes::Bytes;
use smallvec::SmallVec;
use std::ops::Range;

/// The bytes that a part of a URL stands for.
pub fn unquote(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len());
    unquote_into(text, &mut out);
    Bytes::from(out)
}

/// Appends the bytes that a part of a URL stands for, and says where they lie.
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

/// A name as a part of a URL: letters, digits and `-._~` as they are, a space as `+`, all else as `%XX`.
pub fn quote(name: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(name.len());
    for &byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    out
}

/// As many parts as the path of an object of any type has.
const SEGMENTS_USUAL: usize = 6;

/// Parameters of a usual query.
const PARAMETERS_USUAL: usize = 4;

/// The parts of a path.
pub type Segments = SmallVec<[Bytes; SEGMENTS_USUAL]>;

/// Names and values of a query's parameters.
pub type Parameters = SmallVec<[(Bytes, Bytes); PARAMETERS_USUAL]>;

/// The parts of a path, decoded. Empty ones do not count: `/buckets//keys` has two.
pub fn segments(path: &str) -> Segments {
    // All parts share one piece of memory.
    let mut text = Vec::with_capacity(path.len());
    let parts = path.split('/').filter(|part| !part.is_empty());
    let places: SmallVec<[_; SEGMENTS_USUAL]> = parts.map(|part| unquote_into(part.as_bytes(), &mut text)).collect();
    let text = Bytes::from(text);
    places.into_iter().map(|place| text.slice(place)).collect()
}

/// The parameters of a query, decoded, in their order.
pub fn parameters(query: &str) -> Parameters {
    let mut text = Vec::with_capacity(query.len());
    let mut unquoted = |part: &str| unquote_into(part.as_bytes(), &mut text);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let places: SmallVec<[_; PARAMETERS_USUAL]> = pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (unquoted(name), unquoted(value))
        })
        .collect();
    let text = Bytes::from(text);
    places.into_iter().map(|(name, value)| (text.slice(name), text.slice(value))).collect()
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

    #[test]
    fn empty_segments_vanish() {
        assert_eq!(segments("/buckets//keys/k")[..], ["buckets", "keys", "k"].map(Bytes::from));
        assert_eq!(segments("/a%2Fb/")[..], [Bytes::from("a/b")]);
        assert!(segments("/").is_empty());
    }

    #[test]
    fn parameters_keep_their_order() {
        let expected = [("r", "1"), ("r", ""), ("x", "a b")].map(|(n, v)| (Bytes::from(n), Bytes::from(v)));
        assert_eq!(parameters("r=1&&r&x=a+b")[..], expected);
    }

    proptest! {
        #[test]
        fn quoting_is_undone(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(&unquote(quote(&name).as_bytes())[..], &name[..]);
        }
    }
}
