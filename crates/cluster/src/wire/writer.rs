//! Writing a message. Hot path: a message costs one allocation, and the value of an object is not
//! copied unless it is small.

use super::VERSION;
use bytes::Bytes;
use ombak_peer::mux::Body;
use smallvec::SmallVec;

/// Most messages, less the value of an object, fit this length, so they grow without an allocation.
const INLINE_BYTES: usize = 256;
/// A head up to this length is copied behind the other fields of its message.
const COPIED_HEAD_BYTES_MAX: usize = 1 << 10;
/// A body up to this length is copied behind its head: a part of its own costs more than the copy.
const COPIED_BODY_BYTES_MAX: usize = 512;

/// The first part of a message, as it grows.
pub(crate) struct Writer {
    out: SmallVec<[u8; INLINE_BYTES]>,
}

impl Writer {
    /// Begins a message.
    pub(crate) fn of_message() -> Self {
        let mut out = SmallVec::new();
        out.push(VERSION);
        Self { out }
    }

    pub(crate) fn u8(&mut self, number: u8) {
        self.out.push(number);
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// Writes an optional or additional field. Tags rise.
    pub(crate) fn field(&mut self, tag: u8, content: &[u8]) {
        self.u8(tag);
        self.bytes(content);
    }

    /// Begins the content of a field.
    pub(crate) fn of_field() -> Self {
        Self { out: SmallVec::new() }
    }

    /// Writes a field with its content. Tags rise.
    pub(crate) fn field_of(&mut self, tag: u8, content: &Self) {
        self.field(tag, &content.out);
    }

    /// Writes a field that holds a number.
    pub(crate) fn number_field(&mut self, tag: u8, number: u64) {
        let mut content = Self { out: SmallVec::new() };
        content.varint(number);
        self.field(tag, &content.out);
    }

    /// Writes a field that holds numbers.
    pub(crate) fn numbers_field(&mut self, tag: u8, numbers: &[u64]) {
        let mut content = Self { out: SmallVec::new() };
        numbers.iter().for_each(|number| content.varint(*number));
        self.field(tag, &content.out);
    }

    /// Ends the fields.
    pub(crate) fn end_fields(&mut self) {
        self.u8(0);
    }

    /// Ends the message.
    pub(crate) fn finish(&self) -> Body {
        Body::from(Bytes::copy_from_slice(&self.out))
    }

    /// Ends the message with the head and the body of an object.
    pub(crate) fn finish_with_object(&mut self, head: &Bytes, body: &Bytes) -> Body {
        self.varint(head.len() as u64);
        if head.len() > COPIED_HEAD_BYTES_MAX {
            return self.finish().with(head.clone()).with(body.clone());
        }
        self.out.extend_from_slice(head);
        if body.len() > COPIED_BODY_BYTES_MAX {
            return self.finish().with(body.clone());
        }
        self.out.extend_from_slice(body);
        self.finish()
    }

    /// Ends the message with bytes that are not copied unless they are few.
    pub(crate) fn finish_with(&mut self, rest: &Bytes) -> Body {
        if rest.len() > COPIED_HEAD_BYTES_MAX {
            return self.finish().with(rest.clone());
        }
        self.out.extend_from_slice(rest);
        self.finish()
    }
}
