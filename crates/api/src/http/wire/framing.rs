//! How long the body of a request is (RFC 9112 §6).

use super::head::HeadError;

/// Where a request's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    Empty,
    /// After this many bytes, at least one.
    Length(u64),
    /// With the last chunk.
    Chunked,
}

/// What the header lines seen so far say about the body.
#[derive(Debug, Default)]
pub struct FramingLines {
    length: Option<u64>,
    /// The codings of all `Transfer-Encoding` lines, as far as they matter.
    coding: Option<Coding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// `chunked` and nothing else.
    Chunked,
    /// `chunked` over something else, which would have to be decoded, too.
    ChunkedOverOther,
    /// Something that has no end of its own.
    Endless,
}

impl FramingLines {
    /// Takes a `Content-Length` line. Several have to be equal.
    pub fn content_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        let length = decimal(value).ok_or(HeadError::Malformed)?;
        match self.length.replace(length) {
            Some(other) if other != length => Err(HeadError::Malformed),
            _ => Ok(()),
        }
    }

    /// Takes a `Transfer-Encoding` line.
    pub fn transfer_encoding(&mut self, value: &[u8]) {
        for coding in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            let is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.coding = Some(match (self.coding, is_chunked) {
                (None, true) => Coding::Chunked,
                (Some(_), true) => Coding::ChunkedOverOther,
                (_, false) => Coding::Endless,
            });
        }
    }

    /// Where the body ends, if all lines together say so in one way only.
    pub fn decide(&self, is_http_11: bool) -> Result<Framing, HeadError> {
        match (self.coding, self.length) {
            (None, None | Some(0)) => Ok(Framing::Empty),
            (None, Some(length)) => Ok(Framing::Length(length)),
            // A reader that knows only one of the two would see another end.
            (Some(_), Some(_)) => Err(HeadError::Malformed),
            (Some(_), None) if !is_http_11 => Err(HeadError::Malformed),
            (Some(Coding::Chunked), None) => Ok(Framing::Chunked),
            (Some(Coding::ChunkedOverOther), None) => Err(HeadError::UnknownCoding),
            (Some(Coding::Endless), None) => Err(HeadError::Malformed),
        }
    }
}

/// A number of decimal digits only: neither a sign nor white space.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod unit {
    use super::*;

    fn framing(lengths: &[&str], codings: &[&str], is_http_11: bool) -> Result<Framing, HeadError> {
        let mut lines = FramingLines::default();
        for length in lengths {
            lines.content_length(length.as_bytes())?;
        }
        for coding in codings {
            lines.transfer_encoding(coding.as_bytes());
        }
        lines.decide(is_http_11)
    }

    #[test]
    fn one_way_of_reading_is_taken() {
        assert_eq!(framing(&[], &[], true), Ok(Framing::Empty));
        assert_eq!(framing(&["0"], &[], true), Ok(Framing::Empty));
        assert_eq!(framing(&["5"], &[], false), Ok(Framing::Length(5)));
        assert_eq!(framing(&["5", "5"], &[], true), Ok(Framing::Length(5)));
        assert_eq!(framing(&[], &["Chunked"], true), Ok(Framing::Chunked));
        assert_eq!(framing(&["18446744073709551615"], &[], true), Ok(Framing::Length(u64::MAX)));
    }

    #[test]
    fn two_ways_of_reading_are_refused() {
        for lengths in
            [&["5", "6"][..], &["5, 5"], &["+5"], &["-1"], &[""], &["0x5"], &["18446744073709551616"], &["5 6"]]
        {
            assert_eq!(framing(lengths, &[], true), Err(HeadError::Malformed), "{lengths:?}");
        }
        assert_eq!(framing(&["5"], &["chunked"], true), Err(HeadError::Malformed));
        assert_eq!(framing(&["0"], &["chunked"], true), Err(HeadError::Malformed));
        assert_eq!(framing(&[], &["chunked"], false), Err(HeadError::Malformed));
        for codings in
            [&["gzip"][..], &["chunked", "gzip"], &["chunked, identity"], &[""], &["chunked;q=1"], &["chunked,"]]
        {
            assert_eq!(framing(&[], codings, true), Err(HeadError::Malformed), "{codings:?}");
        }
        for codings in [&["gzip, chunked"][..], &["gzip", "chunked"], &["chunked", "chunked"]] {
            assert_eq!(framing(&[], codings, true), Err(HeadError::UnknownCoding), "{codings:?}");
        }
    }
}
