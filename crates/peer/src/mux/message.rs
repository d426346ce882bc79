//! A body on its way out.

use super::ITEM_COST_BYTES;
use super::body::Body;
use super::output::OutputBuffer;
use crate::frame::{AnswerHead, FrameKind, HEADER_BYTES, PAYLOAD_BYTES_MAX, RequestHead, StreamId, encode_header};

/// What precedes a body.
#[derive(Debug)]
enum Head {
    Request(RequestHead),
    Answer(AnswerHead),
    Item { body_bytes: u32 },
}

/// A head and a body, which leave in one frame or in several.
#[derive(Debug)]
pub(super) struct Message {
    head: Head,
    body: Body,
    started: bool,
}

impl Message {
    pub(super) const fn request(head: RequestHead, body: Body) -> Self {
        Self { head: Head::Request(head), body, started: false }
    }

    pub(super) const fn answer(head: AnswerHead, body: Body) -> Self {
        Self { head: Head::Answer(head), body, started: false }
    }

    pub(super) const fn item(body: Body) -> Self {
        Self { head: Head::Item { body_bytes: body.len() as u32 }, body, started: false }
    }

    /// What has not left yet, in bytes of the body.
    #[cfg(test)]
    pub(super) const fn left_bytes(&self) -> usize {
        self.body.len()
    }

    /// When the request came into being of which nothing has left yet.
    pub(super) const fn unsent_since_us(&self) -> Option<i64> {
        match &self.head {
            Head::Request(head) if !self.started => Some(head.born_us),
            _ => None,
        }
    }

    /// Whether the caller has to have given credit for the bytes.
    const fn needs_credit(&self) -> bool {
        matches!(self.head, Head::Item { .. })
    }

    /// Whether the next frame may leave with so much credit.
    pub(super) const fn may_leave(&self, credit_bytes: usize) -> bool {
        let cost = if self.started { 0 } else { ITEM_COST_BYTES };
        let body = if self.body.is_empty() { 0 } else { 1 };
        !self.needs_credit() || credit_bytes >= cost + body
    }

    /// Writes the next frame. Takes what it costs off the credit.
    pub(super) fn write_frame(
        &mut self,
        stream: StreamId,
        credit_bytes: &mut usize,
        out: &mut OutputBuffer,
    ) -> Written {
        let was_started = std::mem::replace(&mut self.started, true);
        let head_bytes = if was_started { 0 } else { self.head.bytes() };
        let mut body_bytes = self.body.len().min(PAYLOAD_BYTES_MAX - head_bytes);
        if self.needs_credit() {
            let cost = if was_started { 0 } else { ITEM_COST_BYTES };
            body_bytes = body_bytes.min(*credit_bytes - cost);
            *credit_bytes -= cost + body_bytes;
        }
        let kind = if was_started { self.head.next_kind() } else { self.head.first_kind() };
        let header = encode_header(kind, stream, head_bytes + body_bytes);
        match &self.head {
            _ if was_started => out.put(&header),
            Head::Request(head) => put_both::<{ HEADER_BYTES + RequestHead::BYTES }>(&header, &head.encode(), out),
            Head::Answer(head) => put_both::<{ HEADER_BYTES + AnswerHead::BYTES }>(&header, &head.encode(), out),
            Head::Item { body_bytes } => put_both::<{ HEADER_BYTES + 4 }>(&header, &body_bytes.to_le_bytes(), out),
        }
        if body_bytes == self.body.len() {
            self.body.take_parts().for_each(|part| out.put_bytes(part));
        } else {
            let mut left = body_bytes;
            while left > 0 {
                let piece = self.body.take_front(left);
                left -= piece.len();
                out.put_bytes(piece);
            }
        }
        Written { stream, kind, body_bytes, is_last: self.body.is_empty() }
    }
}

/// Puts a header and a head, which have `N` bytes together.
fn put_both<const N: usize>(header: &[u8; HEADER_BYTES], head: &[u8], out: &mut OutputBuffer) {
    let mut both = [0; N];
    both[..HEADER_BYTES].copy_from_slice(header);
    both[HEADER_BYTES..].copy_from_slice(head);
    out.put(&both);
}

impl Head {
    const fn bytes(&self) -> usize {
        match self {
            Self::Request(_) => RequestHead::BYTES,
            Self::Answer(_) => AnswerHead::BYTES,
            Self::Item { .. } => 4,
        }
    }

    const fn first_kind(&self) -> FrameKind {
        match self {
            Self::Request(_) => FrameKind::Request,
            Self::Answer(_) => FrameKind::Answer,
            Self::Item { .. } => FrameKind::Item,
        }
    }

    const fn next_kind(&self) -> FrameKind {
        match self {
            Self::Request(_) => FrameKind::RequestChunk,
            Self::Answer(_) => FrameKind::AnswerChunk,
            Self::Item { .. } => FrameKind::ItemChunk,
        }
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
