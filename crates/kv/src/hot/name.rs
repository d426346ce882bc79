//! The name of a key in bounded memory.

use ombak_types::Bucket;
use xxhash_rust::xxh3::Xxh3Default;

/// How many bytes of each part of a name are kept.
const PART_BYTES_MAX: usize = 128;

/// A bucket, or a key in it. A part that is longer than 128 bytes is cut off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The bucket type.
    pub bucket_type: Box<[u8]>,
    /// The bucket.
    pub bucket: Box<[u8]>,
    /// The key; empty for a bucket.
    pub key: Box<[u8]>,
    /// The length of the whole key in bytes.
    pub key_bytes: usize,
}

impl Name {
    pub(super) fn of(bucket: &Bucket, key: &[u8]) -> Self {
        let beginning = |part: &[u8]| part[..part.len().min(PART_BYTES_MAX)].into();
        Self {
            bucket_type: beginning(&bucket.bucket_type),
            bucket: beginning(&bucket.name),
            key: beginning(key),
            key_bytes: key.len(),
        }
    }
}

/// A number that stands for a key of any length.
pub(super) fn id_of(bucket: &Bucket, key: &[u8]) -> u64 {
    let mut hash = Xxh3Default::new();
    for part in [&bucket.bucket_type[..], &bucket.name[..], key] {
        hash.update(&part.len().to_le_bytes());
        hash.update(part);
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_off_and_stays_itself() {
        let bucket = Bucket::untyped("b");
        let (one, other) = ([&[b'k'; 300][..], b"1"].concat(), [&[b'k'; 300][..], b"2"].concat());
        let name = Name::of(&bucket, &one);
        assert_eq!((name.key.len(), name.key_bytes, &*name.bucket), (PART_BYTES_MAX, 301, &b"b"[..]));
        assert_ne!(id_of(&bucket, &one), id_of(&bucket, &other));
        assert_ne!(id_of(&Bucket::untyped("bk"), b"x"), id_of(&Bucket::untyped("b"), b"kx"));
    }
}
