//! Decodes chunked bodies (RFC 9112 §7.1).
//!
//! Size lines and trailers must end in CRLF. A bare LF is refused, because readers that accept it
//! disagree about where a chunk begins. Extensions and trailers are ignored.

use bytes::{Buf, BytesMut};

/// The highest number of bytes of extensions and trailers in one body. Nothing uses their contents.
const EXTRA_BYTES_MAX: usize = 16 * 1024;

/// The highest number of leading zeros and white-space bytes in one size line.
const PADDING_BYTES_MAX: usize = 256;

/// Why a chunked body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkError {
    /// The body is not valid, or its extensions, trailers or padding are too long.
    Malformed,
    /// The body is larger than the limit, or announces that it will be.
    TooLarge,
}

/// The progress of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It needs more bytes.
    Wanting,
    /// The body has ended.
    Ended,
}

/// The decoder of one body.
#[derive(Clone, Debug)]
pub struct ChunkDecoder {
    state: State,
    /// The bytes of content that may still be announced.
    bytes_left: usize,
    extra_left: usize,
    padding_left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a size. It holds the size so far, or `None` before the first digit.
    Size(Option<usize>),
    /// In the white space after a size.
    SizeSpace(usize),
    /// In an extension after a size.
    Extension(usize),
    /// After the CR of a size line.
    SizeLf(usize),
    /// In the content of a chunk. It holds the number of missing bytes.
    Content(usize),
    ContentCr,
    ContentLf,
    /// At the start of a line after the last chunk.
    TrailerStart,
    /// Within a trailer line.
    Trailer,
    /// After the CR of a trailer line.
    TrailerLf,
    /// After the CR of the empty line.
    EndLf,
    Ended,
}

impl ChunkDecoder {
    /// Creates a decoder for a body whose content has at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            state: State::Size(None),
            bytes_left: bytes_max,
            extra_left: EXTRA_BYTES_MAX,
            padding_left: PADDING_BYTES_MAX,
        }
    }

    /// Decodes the bytes at the front of `input` and appends the content to `content`. A chunk that
    /// exceeds the limit is refused as soon as its size is known. Bytes after the end of the body
    /// stay in `input`.
    pub fn decode(&mut self, input: &mut BytesMut, content: &mut BytesMut) -> Result<Progress, ChunkError> {
        while let (true, Some(&byte)) = (self.state != State::Ended, input.first()) {
            if let State::Content(missing) = self.state {
                let bytes = missing.min(input.len());
                content.extend_from_slice(&input[..bytes]);
                input.advance(bytes);
                self.state = if bytes < missing { State::Content(missing - bytes) } else { State::ContentCr };
            } else {
                input.advance(1);
                self.state = self.after(byte)?;
            }
        }
        Ok(if self.state == State::Ended { Progress::Ended } else { Progress::Wanting })
    }

    /// The state after one byte that is not content.
    fn after(&mut self, byte: u8) -> Result<State, ChunkError> {
        Ok(match (self.state, byte) {
            (State::Size(size), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => State::Size(Some(self.grow(size, byte)?)),
            (State::Size(Some(size)) | State::SizeSpace(size) | State::Extension(size), b'\r') => State::SizeLf(size),
            (State::Size(Some(size)) | State::SizeSpace(size), b' ' | b'\t') => {
                take(&mut self.padding_left)?;
                State::SizeSpace(size)
            }
            (State::Size(Some(size)) | State::SizeSpace(size), b';') => self.extra(State::Extension(size))?,
            (State::Extension(size), byte) if byte != b'\n' => self.extra(State::Extension(size))?,
            (State::SizeLf(0), b'\n') => State::TrailerStart,
            (State::SizeLf(size), b'\n') => {
                self.bytes_left -= size;
                State::Content(size)
            }
            (State::ContentCr, b'\r') => State::ContentLf,
            (State::ContentLf, b'\n') => {
                self.padding_left = PADDING_BYTES_MAX;
                State::Size(None)
            }
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::Trailer, b'\r') => self.extra(State::TrailerLf)?,
            (State::TrailerStart | State::Trailer, byte) if byte != b'\n' => self.extra(State::Trailer)?,
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::EndLf, b'\n') => State::Ended,
            _ => return Err(ChunkError::Malformed),
        })
    }

    /// A size with one more digit, or an error if the size exceeds the limit.
    fn grow(&mut self, size: Option<usize>, digit: u8) -> Result<usize, ChunkError> {
        let digit = char::from(digit).to_digit(16).ok_or(ChunkError::Malformed)? as usize;
        if size == Some(0) {
            take(&mut self.padding_left)?;
        }
        let grown = size.unwrap_or(0).checked_mul(16).and_then(|size| size.checked_add(digit));
        grown.filter(|size| *size <= self.bytes_left).ok_or(ChunkError::TooLarge)
    }

    fn extra(&mut self, state: State) -> Result<State, ChunkError> {
        take(&mut self.extra_left)?;
        Ok(state)
    }
}

/// Takes one byte from the rest of a bound.
fn take(left: &mut usize) -> Result<(), ChunkError> {
    *left = left.checked_sub(1).ok_or(ChunkError::Malformed)?;
    Ok(())
}

#[cfg(test)]
mod unit {
    use super::*;
    use proptest::prelude::*;

    /// The content, and the bytes after the body.
    type Decoded = (Vec<u8>, Vec<u8>);

    /// Decodes an input in pieces of `piece` bytes. Returns `None` if the body is not complete.
    fn decode(bytes: &[u8], piece: usize) -> Result<Option<Decoded>, ChunkError> {
        let (mut decoder, mut input, mut content) = (ChunkDecoder::new(1000), BytesMut::new(), BytesMut::new());
        let mut pieces = bytes.chunks(piece);
        while let Some(piece) = pieces.next() {
            input.extend_from_slice(piece);
            if decoder.decode(&mut input, &mut content)? == Progress::Ended {
                input.extend_from_slice(&pieces.collect::<Vec<_>>().concat());
                return Ok(Some((content.to_vec(), input.to_vec())));
            }
            assert!(input.is_empty());
        }
        Ok(None)
    }

    #[test]
    fn chunks_are_put_together() {
        for (text, content, rest) in [
            ("0\r\n\r\n", "", ""),
            ("3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nGET", "abc0123456789", "GET"),
            ("3;a=\"b\"\r\nabc\r\n0 ;x\r\nTrailer: t\r\nOther: o\r\n\r\nx", "abc", "x"),
            ("3 \t\r\nabc\r\n0\r\n\r\n", "abc", ""),
        ] {
            for piece in [1, 2, 100] {
                assert_eq!(decode(text.as_bytes(), piece), Ok(Some((content.into(), rest.into()))), "{text:?}");
            }
        }
        assert_eq!(decode(b"3\r\nabc\r\n0\r\n\r", 100), Ok(None));
    }

    #[test]
    fn everything_else_is_malformed() {
        for bad in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\na\r\n",
            "0x1\r\n",
            "3\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "3 3\r\nabc\r\n",
            "3;\nabc\r\n",
            "0\r\n\n",
            "0\r\nA: b\n\r\n",
            "0\r\nA: b\rc",
            ";\r\n",
            " 3\r\n",
            "3\r\r\n",
            "0\r\n\rx",
        ] {
            for piece in [1, 100] {
                assert_eq!(decode(bad.as_bytes(), piece), Err(ChunkError::Malformed), "{bad:?}");
            }
        }
    }

    #[test]
    fn a_size_beyond_the_limit_is_refused_before_the_content_comes() {
        for size in ["3e9", "ffffffffffffffff", "10000000000000000", "3e8\r\n"] {
            let refused = decode(size.as_bytes(), 1);
            assert_eq!(refused.is_err(), size != "3e8\r\n", "{size}");
        }
        let two = format!("3e8\r\n{}\r\n1", "x".repeat(1000));
        assert_eq!(decode(two.as_bytes(), 100), Err(ChunkError::TooLarge));
    }

    #[test]
    fn what_says_nothing_is_bounded() {
        for endless in [
            "0".repeat(300),
            format!("1{}", " ".repeat(300)),
            format!("1;{}", "x".repeat(20_000)),
            format!("0\r\n{}", "A: b\r\n".repeat(4000)),
        ] {
            assert_eq!(decode(endless.as_bytes(), 4096), Err(ChunkError::Malformed));
        }
        let padded = format!("{}1   \r\na\r\n", "0".repeat(100)).repeat(1000);
        assert_eq!(decode(padded.as_bytes(), 4096), Ok(None));
    }

    proptest! {
        #[test]
        fn what_is_sent_in_chunks_arrives(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..20), piece in 1usize..50,
        ) {
            let mut sent = Vec::new();
            for chunk in &chunks {
                sent.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                sent.extend_from_slice(chunk);
                sent.extend_from_slice(b"\r\n");
            }
            sent.extend_from_slice(b"0\r\n\r\nnext");
            prop_assert_eq!(decode(&sent, piece), Ok(Some((chunks.concat(), b"next".to_vec()))));
        }

        #[test]
        fn the_pieces_do_not_matter(bytes in "[0-3a;x \r\n]{0,40}", piece in 1usize..8) {
            let whole = decode(bytes.as_bytes(), usize::MAX >> 1);
            prop_assert_eq!(decode(bytes.as_bytes(), piece), whole);
        }
    }
}
