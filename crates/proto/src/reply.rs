//! Writes frames: any message, and `RpbGetResp` and `RpbPutResp` directly from an object, without
//! an intermediate message.
//!
//! Lengths are computed first, so that a frame is written from front to back. An [`Output`] decides
//! whether a value is copied.

use crate::code;
use crate::messages::RpbErrorResp;
use crate::wire::{put_varint, varint_len};
use bytes::Bytes;
use ombak_types::stored_object::SingleSibling;
use ombak_types::time::UnixMicros;
use ombak_types::{Object, Sibling};
use prost::Message;

/// Maximum room that is reserved at once for a frame, in bytes: large values may not be copied at
/// all.
const RESERVED_BYTES_MAX: usize = 64 << 10;

/// The destination of an answer.
pub trait Output {
    /// The end of the written bytes; further bytes are appended to it.
    fn bytes(&mut self) -> &mut Vec<u8>;

    /// Appends a value, with or without copying it.
    fn put_value(&mut self, value: &Bytes);
}

impl Output for Vec<u8> {
    #[inline]
    fn bytes(&mut self) -> &mut Vec<u8> {
        self
    }

    #[inline]
    fn put_value(&mut self, value: &Bytes) {
        self.extend_from_slice(value);
    }
}

/// Appends a frame without a body.
pub fn write_empty(code: u8, out: &mut Vec<u8>) {
    write_header(code, 0, out);
}

/// Appends a frame with an encoded message.
pub fn write_message<M: Message>(code: u8, message: &M, out: &mut Vec<u8>) {
    write_header(code, message.encoded_len(), out);
    message.encode_raw(out);
}

/// Appends an `RpbErrorResp`; its `errcode` is always 0 (docs/riak/pb-api.md §1.1).
pub fn write_error(text: impl Into<Bytes>, out: &mut Vec<u8>) {
    write_message(code::ERROR_RESP, &RpbErrorResp { errmsg: text.into(), errcode: 0 }, out);
}

/// Appends the `RpbGetResp` of an object. `vclock` is its clock in the form that clients receive.
pub fn write_get_reply(object: &Object, vclock: &[u8], out: &mut impl Output) {
    write_header(code::GET_RESP, contents_len(object) + bytes_len(vclock), out.bytes());
    put_contents(object, out);
    put_bytes(2, vclock, out.bytes());
}

/// Appends the `RpbGetResp` of an object that was not decoded.
pub fn write_single_get_reply(single: &SingleSibling, out: &mut impl Output) {
    let (plain, vclock) = (Plain::of_single(single), single.clock_bytes());
    let content_len = plain.len();
    write_header(code::GET_RESP, delimited_len(content_len) + bytes_len(vclock), out.bytes());
    put_delimited(1, content_len, out.bytes());
    plain.put_texts(out);
    plain.put_last_mod(out.bytes());
    put_bytes(2, vclock, out.bytes());
}

/// Appends the `RpbPutResp` with the stored object and its clock, and with the key if the server
/// generated it.
pub fn write_put_reply(stored: Option<(&Object, &[u8])>, key: Option<&[u8]>, out: &mut impl Output) {
    let stored_len = stored.map_or(0, |(object, vclock)| contents_len(object) + bytes_len(vclock));
    write_header(code::PUT_RESP, stored_len + key.map_or(0, bytes_len), out.bytes());
    if let Some((object, vclock)) = stored {
        put_contents(object, out);
        put_bytes(2, vclock, out.bytes());
    }
    if let Some(key) = key {
        put_bytes(3, key, out.bytes());
    }
}

fn write_header(code: u8, body_len: usize, out: &mut Vec<u8>) {
    // A reply of more than 4 GiB cannot be framed. `object.size.maximum` and the maximum of
    // siblings keep objects far smaller.
    let length = u32::try_from(body_len + 1).unwrap_or(u32::MAX);
    out.reserve((4 + 1 + body_len).min(RESERVED_BYTES_MAX));
    out.extend_from_slice(&length.to_be_bytes());
    out.push(code);
}

/// The length of a length-delimited field whose number is below 16.
#[inline]
fn delimited_len(len: usize) -> usize {
    1 + varint_len(len as u64) + len
}

#[inline]
fn bytes_len(bytes: &[u8]) -> usize {
    delimited_len(bytes.len())
}

#[inline]
fn put_delimited(number: u8, len: usize, out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    put_varint(len as u64, out);
}

#[inline]
fn put_bytes(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    put_delimited(number, bytes.len(), out);
    out.extend_from_slice(bytes);
}

#[inline]
fn put_number(number: u8, n: u64, out: &mut Vec<u8>) {
    out.push(number << 3);
    put_varint(n, out);
}

fn contents_len(object: &Object) -> usize {
    object.siblings.iter().map(|sibling| delimited_len(content_len(sibling))).sum()
}

fn put_contents(object: &Object, out: &mut impl Output) {
    for sibling in &object.siblings {
        put_delimited(1, content_len(sibling), out.bytes());
        put_content(sibling, out);
    }
}

/// The fields that every content has: the value, texts and a time.
struct Plain<'a> {
    value: &'a Bytes,
    /// Fields 2 to 5.
    texts: [Option<&'a [u8]>; 4],
    last_modified: Option<UnixMicros>,
}

impl<'a> Plain<'a> {
    fn of(sibling: &'a Sibling) -> Self {
        let Sibling { value, meta } = sibling;
        let (charset, encoding) = (meta.charset.as_ref(), meta.content_encoding.as_ref());
        let texts = [meta.served_content_type(), charset, encoding, meta.vtag.as_ref()];
        Self { value, texts: texts.map(|text| text.map(|t| &t[..])), last_modified: meta.last_modified }
    }

    /// A tombstone has no such form, because it is not sent.
    fn of_single(single: &'a SingleSibling) -> Self {
        let texts = [single.content_type(), None, None, single.vtag()];
        Self { value: single.value(), texts, last_modified: single.last_modified() }
    }

    /// Unix seconds and microseconds of the last write, as fields 7 and 8 hold them.
    fn last_mod(&self) -> Option<(u64, u64)> {
        self.last_modified.map(|at| (u64::from(at.secs() as u32), u64::from(at.subsec_us())))
    }

    #[inline]
    fn len(&self) -> usize {
        let texts = self.texts.iter().flatten().map(|text| bytes_len(text)).sum::<usize>();
        let last_mod = self.last_mod().map_or(0, |(secs, subsec_us)| 2 + varint_len(secs) + varint_len(subsec_us));
        bytes_len(self.value) + texts + last_mod
    }

    #[inline]
    fn put_texts(&self, out: &mut impl Output) {
        put_delimited(1, self.value.len(), out.bytes());
        out.put_value(self.value);
        let out = out.bytes();
        for (number, text) in (2..).zip(self.texts) {
            if let Some(text) = text {
                put_bytes(number, text, out);
            }
        }
    }

    #[inline]
    fn put_last_mod(&self, out: &mut Vec<u8>) {
        if let Some((secs, subsec_us)) = self.last_mod() {
            put_number(7, secs, out);
            put_number(8, subsec_us, out);
        }
    }
}

fn pair_len(name: &[u8], value: &[u8]) -> usize {
    bytes_len(name) + bytes_len(value)
}

fn content_len(sibling: &Sibling) -> usize {
    let meta = &sibling.meta;
    let mut len = Plain::of(sibling).len();
    for link in &meta.links {
        len += delimited_len(bytes_len(&link.bucket) + bytes_len(&link.key) + bytes_len(&link.tag));
    }
    for (name, value) in &meta.user_meta {
        len += delimited_len(pair_len(name, value));
    }
    for entry in &meta.indexes {
        len += delimited_len(pair_len(&entry.field, &entry.term.to_text()));
    }
    len + if meta.deleted { 2 } else { 0 }
}

fn put_content(sibling: &Sibling, out: &mut impl Output) {
    let (meta, plain) = (&sibling.meta, Plain::of(sibling));
    plain.put_texts(out);
    let out = out.bytes();
    for link in &meta.links {
        put_delimited(6, bytes_len(&link.bucket) + bytes_len(&link.key) + bytes_len(&link.tag), out);
        put_bytes(1, &link.bucket, out);
        put_bytes(2, &link.key, out);
        put_bytes(3, &link.tag, out);
    }
    plain.put_last_mod(out);
    for (name, value) in &meta.user_meta {
        put_pair(9, name, value, out);
    }
    for entry in &meta.indexes {
        put_pair(10, &entry.field, &entry.term.to_text(), out);
    }
    if meta.deleted {
        put_number(11, 1, out);
    }
}

fn put_pair(number: u8, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    put_delimited(number, pair_len(name, value), out);
    put_bytes(1, name, out);
    put_bytes(2, value, out);
}

/// The generated message of one sibling, for replies that are not on the hot path.
pub fn content_message(sibling: &Sibling) -> crate::messages::RpbContent {
    use crate::messages::{RpbContent, RpbLink, RpbPair};
    let meta = &sibling.meta;
    let pair = |key: &Bytes, value: Bytes| RpbPair { key: key.clone(), value: Some(value) };
    RpbContent {
        value: sibling.value.clone(),
        content_type: meta.served_content_type().cloned(),
        charset: meta.charset.clone(),
        content_encoding: meta.content_encoding.clone(),
        vtag: meta.vtag.clone(),
        links: (meta.links.iter())
            .map(|l| RpbLink { bucket: Some(l.bucket.clone()), key: Some(l.key.clone()), tag: Some(l.tag.clone()) })
            .collect(),
        last_mod: meta.last_modified.map(|at| at.secs() as u32),
        last_mod_usecs: meta.last_modified.map(|at| at.subsec_us()),
        usermeta: meta.user_meta.iter().map(|(name, value)| pair(name, value.clone())).collect(),
        indexes: meta.indexes.iter().map(|entry| pair(&entry.field, entry.term.to_text())).collect(),
        deleted: meta.deleted.then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, next_frame};
    use crate::messages::{RpbGetResp, RpbPutResp};
    use bytes::BytesMut;
    use ombak_types::stored_object::{encode_clock, encode_head};
    use ombak_types::{IndexEntry, Link, SiblingMeta};
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from)
    }

    fn text() -> impl Strategy<Value = Option<Bytes>> {
        prop::option::of(bytes())
    }

    fn index_entry() -> impl Strategy<Value = IndexEntry> {
        prop_oneof![
            any::<i128>().prop_map(|n| IndexEntry::parse(b"N_int", n.to_string().as_bytes()).unwrap()),
            bytes().prop_map(|term| IndexEntry::parse(b"a_bin", &term).unwrap()),
        ]
    }

    prop_compose! {
        fn sibling()(
            value in bytes(),
            (content_type, charset, content_encoding, vtag) in (text(), text(), text(), text()),
            last_modified in prop::option::of(0u64..u64::from(u32::MAX) * 1_000_000),
            links in prop::collection::vec((bytes(), bytes(), bytes()), 0..3),
            user_meta in prop::collection::vec((bytes(), bytes()), 0..3),
            indexes in prop::collection::vec(index_entry(), 0..3),
            deleted in any::<bool>(),
            val_encoding in 0u8..3,
            plain in any::<bool>(),
        ) -> Sibling {
            if plain {
                let meta = SiblingMeta { content_type, vtag, last_modified: last_modified.map(UnixMicros), ..SiblingMeta::default() };
                return Sibling { value, meta };
            }
            let links = links.into_iter().map(|(bucket, key, tag)| Link { bucket, key, tag }).collect();
            let last_modified = last_modified.map(UnixMicros);
            let meta = SiblingMeta {
                content_type, charset, content_encoding, vtag, last_modified, links, user_meta, indexes, deleted,
                val_encoding,
                ..SiblingMeta::default()
            };
            Sibling { value, meta }
        }
    }

    fn the_frame(out: &[u8]) -> Frame {
        let mut buffer = BytesMut::from(out);
        let frame = next_frame(&mut buffer, usize::MAX).unwrap().unwrap();
        assert!(buffer.is_empty());
        frame
    }

    proptest! {
        #[test]
        fn an_object_that_was_not_decoded_is_answered_as_one_that_was(sibling in sibling()) {
            let object = Object { siblings: vec![sibling], ..Object::default() };
            let mut head = Vec::new();
            encode_head(&object, &mut head);
            if let Some(single) = SingleSibling::read(&head.into(), &object.siblings[0].value).unwrap()
                && !single.is_deleted()
            {
                let (mut out, mut expected) = (Vec::new(), Vec::new());
                write_single_get_reply(&single, &mut out);
                write_get_reply(&object, &encode_clock(&object.clock), &mut expected);
                prop_assert_eq!(out, expected);
            }
        }

        #[test]
        fn replies_are_byte_for_byte_those_of_the_generated_messages(
            siblings in prop::collection::vec(sibling(), 0..4), vclock in bytes(), key in text(),
        ) {
            let object = Object { siblings, ..Object::default() };
            let content: Vec<_> = object.siblings.iter().map(content_message).collect();

            let mut out = Vec::new();
            write_get_reply(&object, &vclock, &mut out);
            let get = RpbGetResp { content: content.clone(), vclock: Some(vclock.clone()), unchanged: None };
            prop_assert_eq!(the_frame(&out), Frame { code: code::GET_RESP, body: get.encode_to_vec().into() });

            out.clear();
            write_put_reply(Some((&object, &vclock)), key.as_deref(), &mut out);
            let put = RpbPutResp { content, vclock: Some(vclock), key };
            prop_assert_eq!(the_frame(&out), Frame { code: code::PUT_RESP, body: put.encode_to_vec().into() });
        }
    }

    #[test]
    fn an_error_is_riaks() {
        let mut out = Vec::new();
        write_error("modified", &mut out);
        assert_eq!(out, b"\x00\x00\x00\x0d\x00\x0a\x08modified\x10\x00");
    }

    #[test]
    fn a_put_without_anything_to_say_has_no_body() {
        let mut out = Vec::new();
        write_put_reply(None, None, &mut out);
        assert_eq!(out, [0, 0, 0, 1, 12]);
    }
}
