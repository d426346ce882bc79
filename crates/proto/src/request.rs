//! Writes requests for clients that send many: `RpbGetReq`, `RpbPutReq` and `RpbDelReq` as whole
//! frames, directly from borrowed parts.
//!
//! Lengths are computed first, so that a frame is written from front to back and a value is copied
//! exactly once. Fields are in ascending order, so the bytes equal those of the generated messages.

use crate::code;
use crate::frame::HEADER_BYTES;
use crate::get_req::GetReq;
use crate::wire::{put_varint, varint_len};

/// A write of one key (docs/riak/pb-api.md §6.2), with the fields that clients usually set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §4, §6.2")]
pub struct PutRequest<'a> {
    pub bucket: &'a [u8],
    /// The key; without one the server generates it.
    pub key: Option<&'a [u8]>,
    pub vclock: Option<&'a [u8]>,
    pub value: &'a [u8],
    pub content_type: Option<&'a [u8]>,
    /// Further encoded fields of the content, from [`put_index`] or copied from a content that was
    /// read.
    pub content_fields: &'a [u8],
    pub w: Option<u32>,
    pub dw: Option<u32>,
    pub return_body: Option<bool>,
    pub pw: Option<u32>,
    /// In milliseconds.
    pub timeout: Option<u32>,
    pub bucket_type: Option<&'a [u8]>,
}

/// A deletion of one key (docs/riak/pb-api.md §6.3), with the fields that clients usually set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §6.3")]
pub struct DelRequest<'a> {
    pub bucket: &'a [u8],
    pub key: &'a [u8],
    pub rw: Option<u32>,
    pub vclock: Option<&'a [u8]>,
    /// In milliseconds.
    pub timeout: Option<u32>,
    pub bucket_type: Option<&'a [u8]>,
}

/// Appends the frame of a read.
pub fn write_get(req: &GetReq<'_>, out: &mut Vec<u8>) {
    frame(code::GET_REQ, out, |out| {
        put_text(1, req.bucket, out);
        put_text(2, req.key, out);
        put_number(3, req.r, out);
        put_number(4, req.pr, out);
        put_flag(5, req.basic_quorum, out);
        put_flag(6, req.notfound_ok, out);
        put_text(7, req.if_modified, out);
        put_flag(8, req.head, out);
        put_flag(9, req.deletedvclock, out);
        put_number(10, req.timeout, out);
        put_flag(11, req.sloppy_quorum, out);
        put_number(12, req.n_val, out);
        put_text(13, req.bucket_type, out);
        put_number(14, req.node_confirms, out);
    });
}

/// Appends the frame of a write.
pub fn write_put(req: &PutRequest<'_>, out: &mut Vec<u8>) {
    out.reserve(HEADER_BYTES + 128 + req.value.len() + req.content_fields.len());
    frame(code::PUT_REQ, out, |out| {
        put_text(1, Some(req.bucket), out);
        put_text(2, req.key, out);
        put_text(3, req.vclock, out);
        let content_len = text_len(req.value) + req.content_type.map_or(0, text_len) + req.content_fields.len();
        put_key(4, 2, out);
        put_varint(content_len as u64, out);
        put_text(1, Some(req.value), out);
        put_text(2, req.content_type, out);
        out.extend_from_slice(req.content_fields);
        put_number(5, req.w, out);
        put_number(6, req.dw, out);
        put_flag(7, req.return_body, out);
        put_number(8, req.pw, out);
        put_number(12, req.timeout, out);
        put_text(16, req.bucket_type, out);
    });
}

/// Appends the frame of a deletion.
pub fn write_delete(req: &DelRequest<'_>, out: &mut Vec<u8>) {
    frame(code::DEL_REQ, out, |out| {
        put_text(1, Some(req.bucket), out);
        put_text(2, Some(req.key), out);
        put_number(3, req.rw, out);
        put_text(4, req.vclock, out);
        put_number(10, req.timeout, out);
        put_text(13, req.bucket_type, out);
    });
}

/// Appends an index entry in the form of [`PutRequest::content_fields`].
pub fn put_index(name: &[u8], term: &[u8], out: &mut Vec<u8>) {
    put_key(10, 2, out);
    put_varint((text_len(name) + text_len(term)) as u64, out);
    put_text(1, Some(name), out);
    put_text(2, Some(term), out);
}

/// Writes a frame whose length is known only after its body was written.
fn frame(code: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, code]);
    body(out);
    // A request of more than 4 GiB cannot be framed; no server accepts a hundredth of that.
    let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// The length of a text field whose number is below 16.
fn text_len(text: &[u8]) -> usize {
    1 + varint_len(text.len() as u64) + text.len()
}

fn put_key(number: u8, wire_type: u8, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | u64::from(wire_type), out);
}

fn put_text(number: u8, text: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        put_key(number, 2, out);
        put_varint(text.len() as u64, out);
        out.extend_from_slice(text);
    }
}

fn put_number(number: u8, n: Option<u32>, out: &mut Vec<u8>) {
    if let Some(n) = n {
        put_key(number, 0, out);
        put_varint(u64::from(n), out);
    }
}

fn put_flag(number: u8, flag: Option<bool>, out: &mut Vec<u8>) {
    put_number(number, flag.map(u32::from), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{RpbContent, RpbDelReq, RpbGetReq, RpbPair, RpbPutReq};
    use crate::reply::write_message;
    use bytes::Bytes;
    use proptest::prelude::*;
    use prost::Message;

    fn framed<M: Message>(code: u8, message: &M) -> Vec<u8> {
        let mut out = Vec::new();
        write_message(code, message, &mut out);
        out
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
    }

    fn text() -> impl Strategy<Value = Option<Bytes>> {
        prop::option::of(bytes())
    }

    proptest! {
        #[test]
        fn a_get_is_byte_for_byte_the_generated_one(
            (bucket, key, if_modified, bucket_type) in (text(), text(), text(), text()),
            (r, pr, timeout, n_val, node_confirms) in any::<(Option<u32>, Option<u32>, Option<u32>, Option<u32>, Option<u32>)>(),
            (basic_quorum, notfound_ok, head, deletedvclock, sloppy_quorum) in
                any::<(Option<bool>, Option<bool>, Option<bool>, Option<bool>, Option<bool>)>(),
        ) {
            let mut out = Vec::new();
            write_get(&GetReq {
                bucket: bucket.as_deref(), key: key.as_deref(), if_modified: if_modified.as_deref(),
                bucket_type: bucket_type.as_deref(), r, pr, timeout, n_val, node_confirms, basic_quorum, notfound_ok,
                head, deletedvclock, sloppy_quorum,
            }, &mut out);
            let twin = RpbGetReq {
                bucket, key, if_modified, r#type: bucket_type, r, pr, timeout, n_val, node_confirms, basic_quorum,
                notfound_ok, head, deletedvclock, sloppy_quorum,
            };
            prop_assert_eq!(out, framed(code::GET_REQ, &twin));
        }

        #[test]
        fn a_put_is_byte_for_byte_the_generated_one(
            (bucket, key, vclock, value, content_type, bucket_type) in (bytes(), text(), text(), bytes(), text(), text()),
            indexes in prop::collection::vec((bytes(), bytes()), 0..4),
            (w, dw, pw, timeout, return_body) in
                any::<(Option<u32>, Option<u32>, Option<u32>, Option<u32>, Option<bool>)>(),
            before in bytes(),
        ) {
            let mut content_fields = Vec::new();
            indexes.iter().for_each(|(name, term)| put_index(name, term, &mut content_fields));
            let mut out = before.to_vec();
            write_put(&PutRequest {
                bucket: &bucket, key: key.as_deref(), vclock: vclock.as_deref(), value: &value,
                content_type: content_type.as_deref(), content_fields: &content_fields,
                bucket_type: bucket_type.as_deref(), w, dw, pw, timeout, return_body,
            }, &mut out);
            let indexes = indexes.into_iter().map(|(key, term)| RpbPair { key, value: Some(term) }).collect();
            let twin = RpbPutReq {
                bucket: Some(bucket), key, vclock, r#type: bucket_type, w, dw, pw, timeout, return_body,
                content: Some(RpbContent { value, content_type, indexes, ..RpbContent::default() }),
                ..RpbPutReq::default()
            };
            prop_assert_eq!(&out[..before.len()], &before[..]);
            prop_assert_eq!(&out[before.len()..], framed(code::PUT_REQ, &twin));
        }

        #[test]
        fn a_delete_is_byte_for_byte_the_generated_one(
            (bucket, key, vclock, bucket_type) in (bytes(), bytes(), text(), text()),
            (rw, timeout) in any::<(Option<u32>, Option<u32>)>(),
        ) {
            let mut out = Vec::new();
            write_delete(&DelRequest {
                bucket: &bucket, key: &key, rw, vclock: vclock.as_deref(), timeout,
                bucket_type: bucket_type.as_deref(),
            }, &mut out);
            let twin = RpbDelReq {
                bucket: Some(bucket), key: Some(key), rw, vclock, timeout, r#type: bucket_type, ..RpbDelReq::default()
            };
            prop_assert_eq!(out, framed(code::DEL_REQ, &twin));
        }
    }
}
