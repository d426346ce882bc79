//! Framing: `length:u32 big-endian` (of code and body), `code:u8`, `body` (docs/riak/pb-api.md §1).

use bytes::{Buf, Bytes, BytesMut};

/// Bytes of the length and the code in front of a body.
pub const HEADER_BYTES: usize = 5;

/// The default maximum size of a frame, in bytes after the length field. It is larger than Riak's
/// largest object (50 MiB) with its metadata.
pub const FRAME_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// The minimum room that a reader has for the next bytes, in bytes.
const READ_BYTES_MIN: usize = 4 << 10;

/// One complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The message code.
    pub code: u8,
    /// The encoded message.
    pub body: Bytes,
}

/// Why bytes cannot be split into frames any more. The connection must be closed, because the start
/// of the next frame is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame has no code.
    #[error("a frame of length 0 has no message code")]
    Empty,
    /// The frame is larger than the limit.
    #[error("a frame of {length} bytes is larger than the limit of {bytes_max}")]
    TooLarge {
        /// Announced length in bytes.
        length: u64,
        /// The limit in bytes.
        bytes_max: usize,
    },
}

/// The length that the frame at the start of `buffer` announces; `None` until four bytes have
/// arrived.
fn announced(buffer: &[u8], bytes_max: usize) -> Result<Option<usize>, FrameError> {
    let Some(length) = buffer.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes)) else { return Ok(None) };
    match usize::try_from(length) {
        Ok(0) => Err(FrameError::Empty),
        Ok(length) if length <= bytes_max => Ok(Some(length)),
        _ => Err(FrameError::TooLarge { length: u64::from(length), bytes_max }),
    }
}

/// The length of the frame at the start of `buffer`, including its length field; `None` until the
/// length field has arrived.
pub fn total_length(buffer: &[u8], bytes_max: usize) -> Result<Option<usize>, FrameError> {
    Ok(announced(buffer, bytes_max)?.map(|length| 4 + length))
}

/// Creates a frame from a buffer of its own. `bytes` holds the length field, the code and the body.
pub fn from_complete(bytes: Bytes) -> Option<Frame> {
    let code = *bytes.get(4)?;
    Some(Frame { code, body: bytes.slice(HEADER_BYTES..) })
}

/// Splits the first frame off `buffer` without copying it. `None` means that more bytes are needed.
/// Only the length is read, so the cost of a repeated call after every read does not grow with the
/// frame.
pub fn next_frame(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<Frame>, FrameError> {
    let Some(length) = announced(buffer, bytes_max)? else { return Ok(None) };
    let Some(&code) = buffer.get(4).filter(|_| buffer.len() >= 4 + length) else { return Ok(None) };
    let mut body = buffer.split_to(4 + length).freeze();
    body.advance(HEADER_BYTES);
    Ok(Some(Frame { code, body }))
}

/// Whether [`next_frame`] would return a frame or an error.
pub fn has_frame(buffer: &[u8], bytes_max: usize) -> bool {
    match announced(buffer, bytes_max) {
        Ok(Some(length)) => buffer.len() >= 4 + length,
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Reserves room for the next read. The announced length of a large frame is not reserved at once:
/// the buffer at most doubles what has arrived, so a peer must send bytes to make the server hold
/// memory.
pub fn make_room(buffer: &mut BytesMut, read_bytes: usize) {
    if buffer.capacity() - buffer.len() < READ_BYTES_MIN {
        buffer.reserve(read_bytes.max(READ_BYTES_MIN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame_bytes(code: u8, body: &[u8]) -> Vec<u8> {
        let mut out = (body.len() as u32 + 1).to_be_bytes().to_vec();
        out.push(code);
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn a_body_may_be_empty_but_a_frame_may_not() {
        let mut buffer = BytesMut::from(&[0, 0, 0, 1, 7][..]);
        assert_eq!(next_frame(&mut buffer, 10), Ok(Some(Frame { code: 7, body: Bytes::new() })));
        let mut buffer = BytesMut::from(&[0, 0, 0, 0][..]);
        assert_eq!(next_frame(&mut buffer, 10), Err(FrameError::Empty));
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused_as_soon_as_its_length_is_known() {
        let mut buffer = BytesMut::from(&[0xff, 0xff, 0xff, 0xff][..]);
        let refused = FrameError::TooLarge { length: u64::from(u32::MAX), bytes_max: 1 << 20 };
        assert_eq!(next_frame(&mut buffer, 1 << 20), Err(refused));
        assert!(has_frame(&buffer, 1 << 20), "an error is something to say");
        let mut exact = BytesMut::from(&frame_bytes(1, &[0; 9])[..]);
        assert!(next_frame(&mut exact, 10).unwrap().is_some());
    }

    #[test]
    fn an_announced_length_reserves_nothing() {
        let mut buffer = BytesMut::new();
        buffer.extend_from_slice(&(60u32 << 20).to_be_bytes());
        assert_eq!(next_frame(&mut buffer, FRAME_BYTES_MAX_DEFAULT), Ok(None));
        make_room(&mut buffer, 16 << 10);
        assert!(buffer.capacity() < 64 << 10, "{}", buffer.capacity());
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_they_are_cut(
            bodies in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..300)), 0..12),
            step in 1usize..200,
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|(code, body)| frame_bytes(*code, body)).collect();
            let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
            for piece in stream.chunks(step) {
                make_room(&mut buffer, 64);
                buffer.extend_from_slice(piece);
                loop {
                    let expected = has_frame(&buffer, 1000);
                    let Some(frame) = next_frame(&mut buffer, 1000).unwrap() else { prop_assert!(!expected); break };
                    prop_assert!(expected);
                    frames.push((frame.code, frame.body.to_vec()));
                }
            }
            prop_assert_eq!(frames, bodies);
        }

        #[test]
        fn any_bytes_end_in_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut buffer = BytesMut::from(&bytes[..]);
            let mut left = buffer.len();
            while let Ok(Some(_)) = next_frame(&mut buffer, 512) {
                prop_assert!(buffer.len() < left);
                left = buffer.len();
            }
        }
    }
}
