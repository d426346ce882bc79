//! Where a key lies in a tree.

use md5::{Digest, Md5};
use ombak_types::Bucket;
use ombak_types::names::DEFAULT_TYPE;

/// The place of a key in the trees of all sizes, and the part of its hash that goes into a leaf
/// (docs/riak/semantics.md §8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The segment in 32 bits. A tree with fewer leaves uses its lowest bits.
    pub number: u32,
    /// What the key adds to its leaf, besides the hash of its clock.
    pub alternative: u32,
}

impl Segment {
    /// The segment of a key: MD5 of the bucket's type (if it is not the default one), the bucket
    /// and the key, without separators.
    pub fn of(bucket: &Bucket, key: &[u8]) -> Self {
        Self::of_parts(&bucket.bucket_type, &bucket.name, key)
    }

    /// The same, of the type and the name of the bucket.
    pub fn of_parts(bucket_type: &[u8], bucket_name: &[u8], key: &[u8]) -> Self {
        let mut md5 = Md5::new();
        if bucket_type != DEFAULT_TYPE {
            md5.update(bucket_type);
        }
        md5.update(bucket_name);
        md5.update(key);
        let digest: [u8; 16] = md5.finalize().into();
        let [a, b, _, _, e, f, g, h, i, j, ..] = digest;
        Self { number: u32::from_be_bytes([e, f, a, b]), alternative: u32::from_be_bytes([g, h, i, j]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of docs/riak/semantics.md §18.
    #[test]
    fn segments_are_riaks() {
        let of = |bucket: Bucket, key: &[u8]| {
            let Segment { number, alternative } = Segment::of(&bucket, key);
            (number, alternative)
        };
        assert_eq!(of(Bucket::untyped("b"), b"k"), (525_041_278, 553_784_695));
        assert_eq!(of(Bucket::typed("t", "b"), b"k"), (371_702_941, 61_430_827));
        assert_eq!(of(Bucket::untyped("bucket"), b"key1"), (537_214_062, 2_555_632_655));
    }
}
