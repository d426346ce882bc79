//! The keys that Riak's bitcask backend writes (docs/riak/backends.md §2.9).

use bytes::Bytes;
use ombak_types::etf::{self, Term};
use ombak_types::names::{DEFAULT_TYPE, decode_storage_key, encode_storage_key, split_storage_key};
use ombak_types::{Bucket, etf::Limits};
use std::borrow::Cow;

/// The limits for the term of a key. They are larger than `{{Type, Bucket}, Key}` needs.
const TERM_LIMITS: Limits = Limits { terms_max: 16, inflated_bytes_max: 1 << 20, depth_max: etf::DEPTH_MAX };

/// The error for bytes that are not a key of Riak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key is neither `{{Bucket, Key}}` nor a short key of version 1")]
pub struct BadKey;

/// Decodes a key. Version 1 is also the storage key of Ombak. Version 0 is `{Bucket, Key}` in the
/// external term format.
pub fn decode(bytes: &Bytes) -> Result<(Bucket, Bytes), BadKey> {
    if bytes.first() != Some(&etf::MAGIC) {
        return decode_storage_key(bytes).map_err(|_| BadKey);
    }
    let term = etf::decode_with(bytes, TERM_LIMITS).map_err(|_| BadKey)?;
    let [bucket, Term::Binary(key)] = term.as_tuple().ok_or(BadKey)? else { return Err(BadKey) };
    let bucket = match bucket {
        Term::Binary(name) => Bucket::untyped(name.clone()),
        Term::Tuple(_) => match bucket.as_tuple() {
            Some([Term::Binary(bucket_type), Term::Binary(name)]) => Bucket::typed(bucket_type.clone(), name.clone()),
            _ => return Err(BadKey),
        },
        _ => return Err(BadKey),
    };
    Ok((bucket, key.clone()))
}

/// The version 1 form of a key. A directory that was upgraded can have both forms of a key; this
/// one identifies it. Other bytes are returned unchanged.
pub(super) fn canonical(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.first() != Some(&etf::MAGIC) {
        return Cow::Borrowed(bytes);
    }
    match decode(&Bytes::copy_from_slice(bytes)) {
        Ok((bucket, key)) if bucket.name.len() <= 65_535 && bucket.bucket_type.len() <= 65_535 => {
            let mut out = Vec::with_capacity(bytes.len());
            encode_storage_key(&bucket, &key, &mut out);
            Cow::Owned(out)
        }
        _ => Cow::Borrowed(bytes),
    }
}

/// Whether these could be the first bytes of a key that is `key_bytes` long. A search for the next
/// record after damage uses this.
pub(super) fn plausible(start: &[u8], key_bytes: usize) -> bool {
    match start {
        [etf::MAGIC, 104, 2, ..] => key_bytes > 8,
        [2, hi, lo, ..] => 3 + usize::from(u16::from_be_bytes([*hi, *lo])) <= key_bytes,
        [3, hi, lo, ..] => 5 + usize::from(u16::from_be_bytes([*hi, *lo])) <= key_bytes,
        _ => false,
    }
}

/// Writes a key of version 0.
pub fn encode_v0(bucket: &Bucket, key: &[u8]) -> Vec<u8> {
    let name = Term::binary(&bucket.name);
    let bucket =
        if bucket.bucket_type == DEFAULT_TYPE { name } else { Term::pair(Term::binary(&bucket.bucket_type), name) };
    etf::encode(&Term::pair(bucket, Term::binary(key)))
}

/// Writes a key of version 1.
pub fn encode_v1(bucket: &Bucket, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_storage_key(bucket, key, &mut out);
    debug_assert!(split_storage_key(&out).is_ok());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_name_the_same_key() {
        for bucket in [Bucket::untyped("b"), Bucket::typed("t", "b")] {
            let (v0, v1) = (encode_v0(&bucket, b"k"), encode_v1(&bucket, b"k"));
            assert_eq!(canonical(&v0), v1);
            for bytes in [v0, v1] {
                assert!(plausible(&bytes, bytes.len()));
                assert_eq!(decode(&Bytes::from(bytes)), Ok((bucket.clone(), Bytes::from_static(b"k"))));
            }
        }
        assert_eq!(encode_v0(&Bucket::untyped("b"), b"k"), b"\x83h\x02m\0\0\0\x01bm\0\0\0\x01k");
    }

    #[test]
    fn other_bytes_are_no_key() {
        for bad in [&b""[..], b"k", b"\x02\0\x09b", b"\x83h\x02", b"\x83a\x01", b"\x83h\x02h\x02a\x01a\x01m\0\0\0\x01k"]
        {
            assert_eq!(decode(&Bytes::from_static(bad)), Err(BadKey), "{bad:?}");
        }
    }
}
