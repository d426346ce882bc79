//! Decides where the body of a request ends (RFC 9112 §6).

use super::head::HeadError;

/// The end of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    Empty,
    /// The body ends after this many bytes, at least one.
    Length(u64),
    /// The body ends with the last chunk.
    Chunked,
}

/// The header lines about the body that have been parsed so far.
#[derive(Debug, Default)]
pub struct FramingLines {
    length: Option<u64>,
    /// A summary of the codings of all `Transfer-Encoding` lines.
    coding: Option<Coding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// `chunked` and nothing else.
    Chunked,
    /// `chunked` applied to another coding, which would also have to be decoded.
    ChunkedOverOther,
    /// A coding that does not mark the end of the body.
    Endless,
}

impl FramingLines {
    /// Adds a `Content-Length` line. If there are several, their values must be equal.
    pub fn content_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        let length = decimal(value).ok_or(HeadError::Malformed)?;
        match self.length.replace(length) {
            Some(other) if other != length => Err(HeadError::Malformed),
            _ => Ok(()),
        }
    }

    /// Adds a `Transfer-Encoding` line.
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

    /// Decides where the body ends, or refuses lines that could be understood in several ways.
    pub fn decide(&self, is_http_11: bool) -> Result<Framing, HeadError> {
        match (self.coding, self.length) {
            (None, None | Some(0)) => Ok(Framing::Empty),
            (None, Some(length)) => Ok(Framing::Length(length)),
            // A reader that knows only one of the two headers would find a different end.
            (Some(_), Some(_)) => Err(HeadError::Malformed),
            (Some(_), None) if !is_http_11 => Err(HeadError::Malformed),
            (Some(Coding::Chunked), None) => Ok(Framing::Chunked),
            (Some(Coding::ChunkedOverOther), None) => Err(HeadError::UnknownCoding),
            (Some(Coding::Endless), None) => Err(HeadError::Malformed),
        }
    }
}

/// Parses a number that consists of decimal digits only, without sign or white space.
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
