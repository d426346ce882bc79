//! Splitting frames off the bytes that have arrived.

use super::{
    AnswerHead, Frame, FrameKind, GOODBYE_TEXT_BYTES_MAX, GoodbyeReason, HEADER_BYTES, PAYLOAD_BYTES_MAX, RequestHead,
    StreamId,
};
use crate::cursor::{Cursor, Truncated};
use bytes::{Buf, Bytes, BytesMut};

/// Why bytes are no frame. The connection has to be closed, because the sender is broken or
/// hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The payload is longer than [`PAYLOAD_BYTES_MAX`].
    #[error("a frame of {length} bytes is larger than the limit of {PAYLOAD_BYTES_MAX}")]
    TooLarge {
        /// The announced length in bytes.
        length: u32,
    },
    /// The kind is none of this version.
    #[error("{kind} is not a kind of frame")]
    Kind {
        /// The number of the kind.
        kind: u8,
    },
    /// A flag or a reserved byte is set.
    #[error("a reserved part of the frame is set")]
    Reserved,
    /// A frame of a request has stream 0, or a frame of the connection has another.
    #[error("the stream does not fit the kind of frame")]
    Stream,
    /// The payload ends inside a value, or goes on after the last.
    #[error("the length of the payload does not fit the kind of frame")]
    Length,
    /// A chunk without bytes, which would cost the receiver work for nothing.
    #[error("a chunk is empty")]
    EmptyChunk,
    /// The first frame of a body has more bytes than the body.
    #[error("a chunk is longer than the body that it begins")]
    ChunkTooLong,
    /// The priority is none of this version.
    #[error("the priority of the request is unknown")]
    Priority,
    /// The status of an answer is none of this version.
    #[error("the status of the answer is unknown")]
    Status,
    /// The text of a goodbye is too long or no UTF-8.
    #[error("the text of the goodbye is malformed")]
    Text,
}

impl From<Truncated> for FrameError {
    fn from(_: Truncated) -> Self {
        Self::Length
    }
}

/// Splits the first frame off `buffer` without copying its payload. `None` means that more bytes
/// are needed. The header is checked as soon as it has arrived, and nothing is reserved for the
/// payload: the caller makes room as bytes arrive.
pub fn next_frame(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    let Some(header) = buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let mut cursor = Cursor::new(header);
    let length = cursor.u32()?;
    let kind = cursor.u8()?;
    let kind = FrameKind::from_code(kind).ok_or(FrameError::Kind { kind })?;
    if (cursor.u8()?, cursor.u16()?) != (0, 0) {
        return Err(FrameError::Reserved);
    }
    let stream = StreamId(cursor.u64()?);
    if kind.is_of_connection() != (stream.0 == 0) {
        return Err(FrameError::Stream);
    }
    let payload_bytes = usize::try_from(length).unwrap_or(usize::MAX);
    if payload_bytes > PAYLOAD_BYTES_MAX {
        return Err(FrameError::TooLarge { length });
    }
    if buffer.len() < HEADER_BYTES + payload_bytes {
        return Ok(None);
    }
    buffer.advance(HEADER_BYTES);
    let payload = buffer.split_to(payload_bytes).freeze();
    decode_payload(kind, stream, payload).map(Some)
}

fn decode_payload(kind: FrameKind, stream: StreamId, mut payload: Bytes) -> Result<Frame, FrameError> {
    Ok(match kind {
        FrameKind::Request => {
            let head = with_cursor(&mut payload, RequestHead::BYTES, RequestHead::decode)?;
            Frame::Request { stream, head, chunk: first_chunk(payload, head.body_bytes)? }
        }
        FrameKind::RequestChunk => Frame::RequestChunk { stream, chunk: next_chunk(payload)? },
        FrameKind::Answer => {
            let head = with_cursor(&mut payload, AnswerHead::BYTES, AnswerHead::decode)?;
            Frame::Answer { stream, head, chunk: first_chunk(payload, head.body_bytes)? }
        }
        FrameKind::AnswerChunk => Frame::AnswerChunk { stream, chunk: next_chunk(payload)? },
        FrameKind::Item => {
            let length = with_cursor(&mut payload, 4, |cursor| Ok(cursor.u32()?))?;
            Frame::Item { stream, length, chunk: first_chunk(payload, length)? }
        }
        FrameKind::ItemChunk => Frame::ItemChunk { stream, chunk: next_chunk(payload)? },
        FrameKind::Cancel => whole(&payload, |_| Ok(Frame::Cancel { stream }))?,
        FrameKind::Credit => whole(&payload, |cursor| Ok(Frame::Credit { stream, bytes: cursor.u32()? }))?,
        FrameKind::Ping => whole(&payload, |cursor| Ok(Frame::Ping { id: cursor.u64()?, clock_us: cursor.i64()? }))?,
        FrameKind::Pong => whole(&payload, |cursor| Ok(Frame::Pong { id: cursor.u64()?, clock_us: cursor.i64()? }))?,
        FrameKind::Goodbye => goodbye(&payload)?,
    })
}

/// Decodes the first `bytes` bytes of a payload and takes them off it.
fn with_cursor<T>(
    payload: &mut Bytes,
    bytes: usize,
    decode: impl FnOnce(&mut Cursor<'_>) -> Result<T, FrameError>,
) -> Result<T, FrameError> {
    let value = decode(&mut Cursor::new(payload))?;
    payload.advance(bytes);
    Ok(value)
}

/// Decodes a payload of which nothing may be left over.
fn whole(
    payload: &[u8],
    decode: impl FnOnce(&mut Cursor<'_>) -> Result<Frame, FrameError>,
) -> Result<Frame, FrameError> {
    let mut cursor = Cursor::new(payload);
    let frame = decode(&mut cursor)?;
    if cursor.is_empty() { Ok(frame) } else { Err(FrameError::Length) }
}

/// The first bytes of a body. They may be missing only if the body is empty, so that every frame of
/// a body brings it forward.
fn first_chunk(chunk: Bytes, body_bytes: u32) -> Result<Bytes, FrameError> {
    let body_bytes = usize::try_from(body_bytes).unwrap_or(usize::MAX);
    if chunk.len() > body_bytes {
        return Err(FrameError::ChunkTooLong);
    }
    if chunk.is_empty() && body_bytes > 0 {
        return Err(FrameError::EmptyChunk);
    }
    Ok(chunk)
}

fn next_chunk(chunk: Bytes) -> Result<Bytes, FrameError> {
    if chunk.is_empty() { Err(FrameError::EmptyChunk) } else { Ok(chunk) }
}

fn goodbye(payload: &[u8]) -> Result<Frame, FrameError> {
    let (code, rest) = payload.split_first_chunk::<2>().ok_or(FrameError::Length)?;
    let (taken, text) = rest.split_first_chunk::<8>().ok_or(FrameError::Length)?;
    if text.len() > GOODBYE_TEXT_BYTES_MAX {
        return Err(FrameError::Text);
    }
    let text = std::str::from_utf8(text).map_err(|_| FrameError::Text)?.to_owned();
    let (reason, taken) = (GoodbyeReason::from_code(u16::from_le_bytes(*code)), u64::from_le_bytes(*taken));
    Ok(Frame::Goodbye { reason, taken, text })
}
