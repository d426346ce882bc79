//! A body on its way out.

use super::ITEM_COST_BYTES;
use super::body::Body;
use super::output::OutputBuffer;
use crate::frame::{FrameKind, PAYLOAD_BYTES_MAX, RequestHead, StreamId, encode_header};
use smallvec::SmallVec;

/// A head and a body, which leave in one frame or in several.
#[derive(Debug)]
pub(super) struct Message {
    first: FrameKind,
    next: FrameKind,
    head: SmallVec<[u8; RequestHead::BYTES]>,
    body: Body,
    started: bool,
    /// Whether the caller has to have given credit for the bytes.
    needs_credit: bool,
}

impl Message {
    pub(super) fn request(head: &RequestHead, body: Body) -> Self {
        Self::new(FrameKind::Request, FrameKind::RequestChunk, &head.encode(), body, false)
    }

    pub(super) fn answer(head: &[u8], body: Body) -> Self {
        Self::new(FrameKind::Answer, FrameKind::AnswerChunk, head, body, false)
    }

    pub(super) fn item(body: Body) -> Self {
        let length = body.len() as u32;
        Self::new(FrameKind::Item, FrameKind::ItemChunk, &length.to_le_bytes(), body, true)
    }

    fn new(first: FrameKind, next: FrameKind, head: &[u8], body: Body, needs_credit: bool) -> Self {
        Self { first, next, head: SmallVec::from_slice(head), body, started: false, needs_credit }
    }

    /// What has not left yet, in bytes of the body.
    pub(super) const fn left_bytes(&self) -> usize {
        self.body.len()
    }

    /// Whether the next frame may leave with so much credit.
    pub(super) const fn may_leave(&self, credit_bytes: usize) -> bool {
        let cost = if self.started { 0 } else { ITEM_COST_BYTES };
        let body = if self.body.is_empty() { 0 } else { 1 };
        !self.needs_credit || credit_bytes >= cost + body
    }

    /// Writes the next frame. Takes what it costs off the credit.
    pub(super) fn write_frame(
        &mut self,
        stream: StreamId,
        credit_bytes: &mut usize,
        out: &mut OutputBuffer,
    ) -> Written {
        let was_started = std::mem::replace(&mut self.started, true);
        let head: &[u8] = if was_started { &[] } else { &self.head };
        let mut body_bytes = self.body.len().min(PAYLOAD_BYTES_MAX - head.len());
        if self.needs_credit {
            let cost = if was_started { 0 } else { ITEM_COST_BYTES };
            body_bytes = body_bytes.min(*credit_bytes - cost);
            *credit_bytes -= cost + body_bytes;
        }
        let kind = if was_started { self.next } else { self.first };
        out.put(&encode_header(kind, stream, head.len() + body_bytes));
        out.put(head);
        let mut left = body_bytes;
        while left > 0 {
            let piece = self.body.take_front(left);
            left -= piece.len();
            out.put_bytes(piece);
        }
        Written { stream, kind, body_bytes, is_last: self.body.is_empty() }
    }
}

/// A frame that was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) stream: StreamId,
    pub(super) kind: FrameKind,
    /// How many bytes of the body it has.
    pub(super) body_bytes: usize,
    /// Whether it ends its body.
    pub(super) is_last: bool,
}

impl Written {
    /// Whether it belongs to an item of a streamed answer.
    pub(super) const fn is_item(&self) -> bool {
        matches!(self.kind, FrameKind::Item | FrameKind::ItemChunk)
    }
}
