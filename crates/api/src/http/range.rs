//! Requests for one range of a value (RFC 9110 §14). A request for several ranges gets the whole
//! value, as the RFC allows.

use std::ops::Range;

/// The part of a value that a `Range` header asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The whole value, because the header is not understood.
    Whole,
    /// These bytes. The range lies within the value and is not empty.
    Part(Range<usize>),
    /// Bytes that the value does not have.
    Unsatisfiable,
}

/// Parses a `Range` header for a value of `len` bytes.
pub fn parse(header: &[u8], len: usize) -> Wanted {
    wanted(header, len).unwrap_or(Wanted::Whole)
}

fn wanted(header: &[u8], len: usize) -> Option<Wanted> {
    let spec = std::str::from_utf8(header).ok()?.trim().strip_prefix("bytes=")?;
    let (first, last) = spec.split_once('-').filter(|_| !spec.contains(','))?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        let suffix = last.parse::<usize>().ok()?.min(len);
        return Some(if suffix == 0 { Wanted::Unsatisfiable } else { Wanted::Part(len - suffix..len) });
    }
    let first = first.parse::<usize>().ok()?;
    let last = if last.is_empty() { usize::MAX } else { last.parse::<usize>().ok()? };
    if last < first {
        return None;
    }
    if first >= len {
        return Some(Wanted::Unsatisfiable);
    }
    Some(Wanted::Part(first..last.saturating_add(1).min(len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_inclusive_and_cut_to_the_value() {
        assert_eq!(parse(b"bytes=0-1", 3), Wanted::Part(0..2));
        assert_eq!(parse(b"bytes=1-", 3), Wanted::Part(1..3));
        assert_eq!(parse(b"bytes=-2", 3), Wanted::Part(1..3));
        assert_eq!(parse(b"bytes=-9", 3), Wanted::Part(0..3));
        assert_eq!(parse(b"bytes=0-99", 3), Wanted::Part(0..3));
        assert_eq!(parse(b"bytes=3-", 3), Wanted::Unsatisfiable);
        assert_eq!(parse(b"bytes=-0", 3), Wanted::Unsatisfiable);
        assert_eq!(parse(b"bytes=0-0", 0), Wanted::Unsatisfiable);
        for whole in [&b"bytes=2-1"[..], b"bytes=0-1,2-3", b"items=0-1", b"bytes=a-b", b"", b"\xff", b"bytes=-"] {
            assert_eq!(parse(whole, 3), Wanted::Whole, "{whole:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_is_always_inside(header in "bytes=[0-9]{0,25}-[0-9]{0,25}", len in 0usize..1000) {
            if let Wanted::Part(range) = parse(header.as_bytes(), len) {
                prop_assert!(range.start < range.end && range.end <= len);
            }
        }
    }
}
