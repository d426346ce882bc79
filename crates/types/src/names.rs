//! Bucket types, buckets and keys: arbitrary bytes.

use bytes::Bytes;
use std::fmt;

/// The bucket type of buckets without an explicit type.
pub const DEFAULT_TYPE: &[u8] = b"default";

/// The maximum length of a key in Riak, in bytes (docs/riak/semantics.md §1).
pub const KEY_BYTES_MAX: usize = 65_536;

/// The maximum length of a bucket type or bucket, in bytes: storage keys store these lengths in 16
/// bits.
pub const NAME_BYTES_MAX: usize = 65_535;

/// A bucket: its type and its name. Here `default` is a type like any other; only hashes and
/// storage keys encode it differently (docs/riak/semantics.md §1).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket {
    /// The bucket type; [`DEFAULT_TYPE`] when the request named none.
    pub bucket_type: Bytes,
    /// The bucket's name within its type.
    pub name: Bytes,
}

impl Bucket {
    /// Creates a bucket of the default type.
    pub fn untyped(name: impl Into<Bytes>) -> Self {
        Self { bucket_type: Bytes::from_static(DEFAULT_TYPE), name: name.into() }
    }

    /// Creates a bucket of a type.
    pub fn typed(bucket_type: impl Into<Bytes>, name: impl Into<Bytes>) -> Self {
        Self { bucket_type: bucket_type.into(), name: name.into() }
    }

    /// Whether this bucket belongs to the default type.
    pub fn is_default_type(&self) -> bool {
        self.bucket_type == DEFAULT_TYPE
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket_type.escape_ascii(), self.name.escape_ascii())
    }
}

/// Why bytes are not a storage key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a storage key: {0}")]
pub struct BadStorageKey(&'static str);

const UNTYPED: u8 = 0x02;
const TYPED: u8 = 0x03;

/// Appends the storage key of an object. It is Riak's bitcask key encoding, version 1
/// (docs/riak/backends.md §2.9): `02 bucket_len:16 bucket key` for the default type,
/// `03 type_len:16 type bucket_len:16 bucket key` for other types.
///
/// # Panics
/// If the type or the bucket is longer than [`NAME_BYTES_MAX`]. Requests with such names are
/// refused earlier.
pub fn encode_storage_key(bucket: &Bucket, key: &[u8], out: &mut Vec<u8>) {
    encode_bucket_prefix(bucket, out);
    out.extend_from_slice(key);
}

/// Appends the common prefix of the storage keys of all objects of `bucket`.
pub fn encode_bucket_prefix(bucket: &Bucket, out: &mut Vec<u8>) {
    if bucket.is_default_type() {
        out.push(UNTYPED);
    } else {
        out.push(TYPED);
        push_len16(&bucket.bucket_type, out);
    }
    push_len16(&bucket.name, out);
}

fn push_len16(bytes: &[u8], out: &mut Vec<u8>) {
    // Truncating a name would give two buckets the same keys.
    assert!(bytes.len() <= NAME_BYTES_MAX, "a name of {} bytes", bytes.len());
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The bucket type, bucket and key of a storage key.
pub type SplitKey<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// Splits a storage key into its parts, without copying.
pub fn split_storage_key(bytes: &[u8]) -> Result<SplitKey<'_>, BadStorageKey> {
    let (&tag, rest) = bytes.split_first().ok_or(BadStorageKey("empty"))?;
    let (bucket_type, rest) = match tag {
        UNTYPED => (DEFAULT_TYPE, rest),
        TYPED => take_len16(rest)?,
        _ => return Err(BadStorageKey("unknown version byte")),
    };
    let (bucket, key) = take_len16(rest)?;
    Ok((bucket_type, bucket, key))
}

/// The owned form of [`split_storage_key`].
pub fn decode_storage_key(bytes: &Bytes) -> Result<(Bucket, Bytes), BadStorageKey> {
    let (bucket_type, name, key) = split_storage_key(bytes)?;
    let bucket_type =
        if bucket_type == DEFAULT_TYPE { Bytes::from_static(DEFAULT_TYPE) } else { bytes.slice_ref(bucket_type) };
    Ok((Bucket { bucket_type, name: bytes.slice_ref(name) }, bytes.slice_ref(key)))
}

fn take_len16(bytes: &[u8]) -> Result<(&[u8], &[u8]), BadStorageKey> {
    let (len, rest) = bytes.split_first_chunk::<2>().ok_or(BadStorageKey("cut short"))?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len))).ok_or(BadStorageKey("a length runs past the end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_keys_are_riaks() {
        let mut out = Vec::new();
        encode_storage_key(&Bucket::untyped("bench_n1"), b"key00000098", &mut out);
        assert_eq!(out, b"\x02\x00\x08bench_n1key00000098");
        out.clear();
        encode_storage_key(&Bucket::typed("t", "b"), b"k", &mut out);
        assert_eq!(out, b"\x03\x00\x01t\x00\x01bk");
        let (bucket, key) = decode_storage_key(&Bytes::from(out)).expect("decodes");
        assert_eq!((bucket, &key[..]), (Bucket::typed("t", "b"), &b"k"[..]));
    }

    #[test]
    fn short_or_foreign_storage_keys_are_refused() {
        for bad in [&b""[..], b"\x02", b"\x02\x00\x05ab", b"\x03\x00\x01", b"\x83h\x02"] {
            assert!(split_storage_key(bad).is_err(), "{bad:?}");
        }
    }
}
