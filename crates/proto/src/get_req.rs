//! `RpbGetReq` for the hot path: it borrows from its frame and is equivalent to
//! `messages::RpbGetReq`.

use crate::wire::{Fields, Value, WireError};

/// A read of one key (docs/riak/pb-api.md §6.1). Absent and empty fields are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "Riak's names; docs/riak/pb-api.md §6.1")]
pub struct GetReq<'a> {
    pub bucket: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
    pub r: Option<u32>,
    pub pr: Option<u32>,
    pub basic_quorum: Option<bool>,
    pub notfound_ok: Option<bool>,
    pub if_modified: Option<&'a [u8]>,
    pub head: Option<bool>,
    pub deletedvclock: Option<bool>,
    /// In milliseconds.
    pub timeout: Option<u32>,
    pub sloppy_quorum: Option<bool>,
    pub n_val: Option<u32>,
    pub bucket_type: Option<&'a [u8]>,
    pub node_confirms: Option<u32>,
}

impl<'a> GetReq<'a> {
    /// Decodes the body of a frame.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let (mut fields, mut req) = (Fields::new(body), Self::default());
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(bytes)) => req.bucket = Some(bytes),
                (2, Value::Bytes(bytes)) => req.key = Some(bytes),
                (3, Value::Varint(n)) => req.r = Some(n as u32),
                (4, Value::Varint(n)) => req.pr = Some(n as u32),
                (5, Value::Varint(n)) => req.basic_quorum = Some(n != 0),
                (6, Value::Varint(n)) => req.notfound_ok = Some(n != 0),
                (7, Value::Bytes(bytes)) => req.if_modified = Some(bytes),
                (8, Value::Varint(n)) => req.head = Some(n != 0),
                (9, Value::Varint(n)) => req.deletedvclock = Some(n != 0),
                (10, Value::Varint(n)) => req.timeout = Some(n as u32),
                (11, Value::Varint(n)) => req.sloppy_quorum = Some(n != 0),
                (12, Value::Varint(n)) => req.n_val = Some(n as u32),
                (13, Value::Bytes(bytes)) => req.bucket_type = Some(bytes),
                (14, Value::Varint(n)) => req.node_confirms = Some(n as u32),
                _ => {}
            }
        }
        Ok(req)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::RpbGetReq;
    use bytes::Bytes;
    use proptest::prelude::*;
    use prost::Message;

    fn twin(req: &GetReq<'_>) -> RpbGetReq {
        let owned = |bytes: Option<&[u8]>| bytes.map(Bytes::copy_from_slice);
        RpbGetReq {
            bucket: owned(req.bucket),
            key: owned(req.key),
            r: req.r,
            pr: req.pr,
            basic_quorum: req.basic_quorum,
            notfound_ok: req.notfound_ok,
            if_modified: owned(req.if_modified),
            head: req.head,
            deletedvclock: req.deletedvclock,
            timeout: req.timeout,
            sloppy_quorum: req.sloppy_quorum,
            n_val: req.n_val,
            r#type: owned(req.bucket_type),
            node_confirms: req.node_confirms,
        }
    }

    fn bytes() -> impl Strategy<Value = Option<Bytes>> {
        prop::option::of(prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from))
    }

    prop_compose! {
        fn request()(
            (bucket, key, if_modified, r#type) in (bytes(), bytes(), bytes(), bytes()),
            (r, pr, timeout, n_val, node_confirms) in any::<(Option<u32>, Option<u32>, Option<u32>, Option<u32>, Option<u32>)>(),
            (basic_quorum, notfound_ok, head, deletedvclock, sloppy_quorum) in
                any::<(Option<bool>, Option<bool>, Option<bool>, Option<bool>, Option<bool>)>(),
        ) -> RpbGetReq {
            RpbGetReq {
                bucket, key, r, pr, basic_quorum, notfound_ok, if_modified, head, deletedvclock, timeout,
                sloppy_quorum, n_val, r#type, node_confirms,
            }
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_the_generated_one_writes(first in request(), second in request()) {
            let mut body = first.encode_to_vec();
            prop_assert_eq!(twin(&GetReq::decode(&body).unwrap()), first);
            // If a field occurs twice, the last one counts.
            second.encode(&mut body).unwrap();
            prop_assert_eq!(twin(&GetReq::decode(&body).unwrap()), RpbGetReq::decode(&body[..]).unwrap());
        }

        #[test]
        fn whatever_the_generated_one_takes_it_takes_too(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(message) = RpbGetReq::decode(&bytes[..]) {
                prop_assert_eq!(twin(&GetReq::decode(&bytes).unwrap()), message);
            }
        }
    }

    #[test]
    fn a_field_of_another_wire_type_counts_as_unknown() {
        let req = GetReq::decode(b"\x0a\x01b\x1a\x03abc").unwrap();
        assert_eq!((req.bucket, req.r), (Some(&b"b"[..]), None));
    }
}
