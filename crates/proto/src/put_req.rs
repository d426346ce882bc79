//! `RpbPutReq` for the hot path: it borrows from its frame and is equivalent to
//! `messages::RpbPutReq`.

use crate::wire::{Fields, Value, WireError};

/// A write of one key (docs/riak/pb-api.md §6.2). Absent and empty fields are distinguished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §6.2")]
pub struct PutReq<'a> {
    pub bucket: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
    pub vclock: Option<&'a [u8]>,
    pub content: Option<Content<'a>>,
    pub w: Option<u32>,
    pub dw: Option<u32>,
    pub return_body: Option<bool>,
    pub pw: Option<u32>,
    pub if_not_modified: Option<bool>,
    pub if_none_match: Option<bool>,
    pub return_head: Option<bool>,
    /// In milliseconds.
    pub timeout: Option<u32>,
    pub asis: Option<bool>,
    pub sloppy_quorum: Option<bool>,
    pub n_val: Option<u32>,
    pub bucket_type: Option<&'a [u8]>,
    pub node_confirms: Option<u32>,
}

/// A value with its metadata (`RpbContent`, docs/riak/pb-api.md §4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §4")]
pub struct Content<'a> {
    pub value: &'a [u8],
    pub content_type: Option<&'a [u8]>,
    pub charset: Option<&'a [u8]>,
    pub content_encoding: Option<&'a [u8]>,
    pub vtag: Option<&'a [u8]>,
    pub links: Vec<Link<'a>>,
    /// Unix seconds.
    pub last_mod: Option<u32>,
    /// The microsecond part.
    pub last_mod_usecs: Option<u32>,
    pub usermeta: Vec<Pair<'a>>,
    pub indexes: Vec<Pair<'a>>,
    pub deleted: Option<bool>,
}

/// `RpbLink`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §4")]
pub struct Link<'a> {
    pub bucket: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
    pub tag: Option<&'a [u8]>,
}

/// `RpbPair`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §4")]
pub struct Pair<'a> {
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl<'a> PutReq<'a> {
    /// Decodes the body of a frame.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let (mut fields, mut req) = (Fields::new(body), Self::default());
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(bytes)) => req.bucket = Some(bytes),
                (2, Value::Bytes(bytes)) => req.key = Some(bytes),
                (3, Value::Bytes(bytes)) => req.vclock = Some(bytes),
                // If a message field occurs twice, its occurrences are merged, as everywhere in
                // Protocol Buffers.
                (4, Value::Bytes(bytes)) => req.content.get_or_insert_default().merge(bytes)?,
                (5, Value::Varint(n)) => req.w = Some(n as u32),
                (6, Value::Varint(n)) => req.dw = Some(n as u32),
                (7, Value::Varint(n)) => req.return_body = Some(n != 0),
                (8, Value::Varint(n)) => req.pw = Some(n as u32),
                (9, Value::Varint(n)) => req.if_not_modified = Some(n != 0),
                (10, Value::Varint(n)) => req.if_none_match = Some(n != 0),
                (11, Value::Varint(n)) => req.return_head = Some(n != 0),
                (12, Value::Varint(n)) => req.timeout = Some(n as u32),
                (13, Value::Varint(n)) => req.asis = Some(n != 0),
                (14, Value::Varint(n)) => req.sloppy_quorum = Some(n != 0),
                (15, Value::Varint(n)) => req.n_val = Some(n as u32),
                (16, Value::Bytes(bytes)) => req.bucket_type = Some(bytes),
                (17, Value::Varint(n)) => req.node_confirms = Some(n as u32),
                _ => {}
            }
        }
        Ok(req)
    }
}

/// Approximate number of bytes per entry of an encoded clock.
const CLOCK_ENTRY_BYTES: usize = 16;

/// The number of links, metadata pairs, index entries and clock entries in the body of a put. It
/// measures the cost of decoding beyond the value. It allocates no memory. A body that does not
/// decode is counted up to the error.
pub fn count_parts(body: &[u8]) -> usize {
    let (mut fields, mut count) = (Fields::new(body), 0);
    while let Ok(Some(field)) = fields.next() {
        count += match field {
            (3, Value::Bytes(clock)) => clock.len() / CLOCK_ENTRY_BYTES,
            (4, Value::Bytes(content)) => count_content_parts(content),
            _ => 0,
        };
    }
    count
}

fn count_content_parts(content: &[u8]) -> usize {
    let (mut fields, mut count) = (Fields::new(content), 0);
    while let Ok(Some((number, _))) = fields.next() {
        count += usize::from(matches!(number, 6 | 9 | 10));
    }
    count
}

/// The names in the body of a put: bucket type, bucket and key, each if it is present.
pub fn names(body: &[u8]) -> [Option<&[u8]>; 3] {
    let (mut fields, mut names) = (Fields::new(body), [None; 3]);
    while let Ok(Some(field)) = fields.next() {
        match field {
            (16, Value::Bytes(name)) => names[0] = Some(name),
            (1, Value::Bytes(name)) => names[1] = Some(name),
            (2, Value::Bytes(name)) => names[2] = Some(name),
            _ => {}
        }
    }
    names
}

impl<'a> Content<'a> {
    fn merge(&mut self, message: &'a [u8]) -> Result<(), WireError> {
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(bytes)) => self.value = bytes,
                (2, Value::Bytes(bytes)) => self.content_type = Some(bytes),
                (3, Value::Bytes(bytes)) => self.charset = Some(bytes),
                (4, Value::Bytes(bytes)) => self.content_encoding = Some(bytes),
                (5, Value::Bytes(bytes)) => self.vtag = Some(bytes),
                (6, Value::Bytes(bytes)) => self.links.push(Link::decode(bytes)?),
                (7, Value::Varint(n)) => self.last_mod = Some(n as u32),
                (8, Value::Varint(n)) => self.last_mod_usecs = Some(n as u32),
                (9, Value::Bytes(bytes)) => self.usermeta.push(Pair::decode(bytes)?),
                (10, Value::Bytes(bytes)) => self.indexes.push(Pair::decode(bytes)?),
                (11, Value::Varint(n)) => self.deleted = Some(n != 0),
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'a> Link<'a> {
    fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let (mut fields, mut link) = (Fields::new(message), Self::default());
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(bytes)) => link.bucket = Some(bytes),
                (2, Value::Bytes(bytes)) => link.key = Some(bytes),
                (3, Value::Bytes(bytes)) => link.tag = Some(bytes),
                _ => {}
            }
        }
        Ok(link)
    }
}

impl<'a> Pair<'a> {
    fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let (mut fields, mut pair) = (Fields::new(message), Self::default());
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(bytes)) => pair.key = bytes,
                (2, Value::Bytes(bytes)) => pair.value = Some(bytes),
                _ => {}
            }
        }
        Ok(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{RpbContent, RpbLink, RpbPair, RpbPutReq};
    use bytes::Bytes;
    use proptest::prelude::*;
    use prost::Message;

    fn owned(bytes: Option<&[u8]>) -> Option<Bytes> {
        bytes.map(Bytes::copy_from_slice)
    }

    fn pairs(pairs: &[Pair<'_>]) -> Vec<RpbPair> {
        pairs.iter().map(|p| RpbPair { key: Bytes::copy_from_slice(p.key), value: owned(p.value) }).collect()
    }

    fn content_twin(c: &Content<'_>) -> RpbContent {
        let link = |l: &Link<'_>| RpbLink { bucket: owned(l.bucket), key: owned(l.key), tag: owned(l.tag) };
        RpbContent {
            value: Bytes::copy_from_slice(c.value),
            content_type: owned(c.content_type),
            charset: owned(c.charset),
            content_encoding: owned(c.content_encoding),
            vtag: owned(c.vtag),
            links: c.links.iter().map(link).collect(),
            last_mod: c.last_mod,
            last_mod_usecs: c.last_mod_usecs,
            usermeta: pairs(&c.usermeta),
            indexes: pairs(&c.indexes),
            deleted: c.deleted,
        }
    }

    fn twin(req: &PutReq<'_>) -> RpbPutReq {
        RpbPutReq {
            bucket: owned(req.bucket),
            key: owned(req.key),
            vclock: owned(req.vclock),
            content: req.content.as_ref().map(content_twin),
            w: req.w,
            dw: req.dw,
            return_body: req.return_body,
            pw: req.pw,
            if_not_modified: req.if_not_modified,
            if_none_match: req.if_none_match,
            return_head: req.return_head,
            timeout: req.timeout,
            asis: req.asis,
            sloppy_quorum: req.sloppy_quorum,
            n_val: req.n_val,
            r#type: owned(req.bucket_type),
            node_confirms: req.node_confirms,
        }
    }

    fn value() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
    }

    fn bytes() -> impl Strategy<Value = Option<Bytes>> {
        prop::option::of(value())
    }

    fn pair() -> impl Strategy<Value = RpbPair> {
        (value(), bytes()).prop_map(|(key, value)| RpbPair { key, value })
    }

    prop_compose! {
        fn content()(
            value in value(),
            (content_type, charset, content_encoding, vtag) in (bytes(), bytes(), bytes(), bytes()),
            links in prop::collection::vec((bytes(), bytes(), bytes()), 0..3),
            (usermeta, indexes) in (prop::collection::vec(pair(), 0..3), prop::collection::vec(pair(), 0..3)),
            (last_mod, last_mod_usecs, deleted) in any::<(Option<u32>, Option<u32>, Option<bool>)>(),
        ) -> RpbContent {
            let links = links.into_iter().map(|(bucket, key, tag)| RpbLink { bucket, key, tag }).collect();
            RpbContent {
                value, content_type, charset, content_encoding, vtag, links, last_mod, last_mod_usecs, usermeta,
                indexes, deleted,
            }
        }
    }

    prop_compose! {
        fn request()(
            (bucket, key, vclock, r#type) in (bytes(), bytes(), bytes(), bytes()),
            content in prop::option::of(content()),
            (w, dw, pw, timeout, n_val) in any::<(Option<u32>, Option<u32>, Option<u32>, Option<u32>, Option<u32>)>(),
            (return_body, if_not_modified, if_none_match, return_head) in
                any::<(Option<bool>, Option<bool>, Option<bool>, Option<bool>)>(),
            (asis, sloppy_quorum, node_confirms) in any::<(Option<bool>, Option<bool>, Option<u32>)>(),
        ) -> RpbPutReq {
            RpbPutReq {
                bucket, key, vclock, content, w, dw, return_body, pw, if_not_modified, if_none_match, return_head,
                timeout, asis, sloppy_quorum, n_val, r#type, node_confirms,
            }
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_the_generated_one_writes(first in request(), second in request()) {
            let mut body = first.encode_to_vec();
            prop_assert_eq!(twin(&PutReq::decode(&body).unwrap()), first);
            // If a field occurs twice, the last one counts; lists and messages are joined.
            second.encode(&mut body).unwrap();
            prop_assert_eq!(twin(&PutReq::decode(&body).unwrap()), RpbPutReq::decode(&body[..]).unwrap());
        }

        #[test]
        fn whatever_the_generated_one_takes_it_takes_too(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(message) = RpbPutReq::decode(&bytes[..]) {
                prop_assert_eq!(twin(&PutReq::decode(&bytes).unwrap()), message);
            }
        }

        #[test]
        fn damage_is_an_error_or_another_message_never_a_panic(
            request in request(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut body = request.encode_to_vec();
            if !body.is_empty() {
                let at = at.index(body.len());
                body[at] = byte;
                if let Ok(message) = RpbPutReq::decode(&body[..]) {
                    prop_assert_eq!(twin(&PutReq::decode(&body).unwrap()), message);
                }
            }
        }
    }
}
