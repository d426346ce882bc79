//! Writing frames.

use super::{Frame, FrameKind, GOODBYE_TEXT_BYTES_MAX, HEADER_BYTES, PAYLOAD_BYTES_MAX, StreamId};
use crate::cursor::text_start;

/// The fixed part of a frame.
pub fn encode_header(kind: FrameKind, stream: StreamId, payload_bytes: usize) -> [u8; HEADER_BYTES] {
    assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a payload of {payload_bytes} bytes does not fit a frame");
    let mut out = [0; HEADER_BYTES];
    out[0..4].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
    out[4] = kind as u8;
    out[8..16].copy_from_slice(&stream.0.to_le_bytes());
    out
}

/// Appends a whole frame to `out`. It copies the payload, so it serves frames of a few bytes and
/// tests.
pub fn encode_frame(frame: &Frame, out: &mut Vec<u8>) {
    let (kind, stream, payload) = match frame {
        Frame::Request { stream, head, chunk } => (FrameKind::Request, *stream, [&head.encode(), &chunk[..]].concat()),
        Frame::RequestChunk { stream, chunk } => (FrameKind::RequestChunk, *stream, chunk.to_vec()),
        Frame::Answer { stream, head, chunk } => (FrameKind::Answer, *stream, [&head.encode(), &chunk[..]].concat()),
        Frame::AnswerChunk { stream, chunk } => (FrameKind::AnswerChunk, *stream, chunk.to_vec()),
        Frame::Item { stream, length, chunk } => {
            (FrameKind::Item, *stream, [&length.to_le_bytes(), &chunk[..]].concat())
        }
        Frame::ItemChunk { stream, chunk } => (FrameKind::ItemChunk, *stream, chunk.to_vec()),
        Frame::Cancel { stream } => (FrameKind::Cancel, *stream, Vec::new()),
        Frame::Credit { stream, bytes } => (FrameKind::Credit, *stream, bytes.to_le_bytes().to_vec()),
        Frame::Ping { id, clock_us } => (FrameKind::Ping, StreamId(0), id_and_clock(*id, *clock_us)),
        Frame::Pong { id, clock_us } => (FrameKind::Pong, StreamId(0), id_and_clock(*id, *clock_us)),
        Frame::Goodbye { reason, taken, text } => {
            let text = text_start(text, GOODBYE_TEXT_BYTES_MAX).as_bytes();
            (FrameKind::Goodbye, StreamId(0), [&reason.code().to_le_bytes()[..], &taken.to_le_bytes(), text].concat())
        }
    };
    out.extend_from_slice(&encode_header(kind, stream, payload.len()));
    out.extend_from_slice(&payload);
}

fn id_and_clock(id: u64, clock_us: i64) -> Vec<u8> {
    [id.to_le_bytes(), clock_us.to_le_bytes()].concat()
}
