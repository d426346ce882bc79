//! The hash that places a key on the ring.

use ombak_types::Bucket;
use sha1::{Digest, Sha1};
use std::fmt;

/// A point of the 160-bit key space: the SHA-1 of the external term format of `{Bucket, Key}`.
/// `Bucket` is `{Type, Name}`, or `Name` for the default type (docs/riak/semantics.md §1, test
/// vectors in §18).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash([u8; 20]);

// Tags of the external term format (docs/riak/backends.md §7.3).
const FORMAT_VERSION: u8 = 131;
const PAIR: [u8; 2] = [104, 2];
const BINARY: u8 = 109;

impl KeyHash {
    /// The hash of a key (`chash_std_keyfun`).
    pub fn of_key(bucket: &Bucket, key: &[u8]) -> Self {
        let mut term = Term::begin();
        term.pair();
        term.bucket(bucket);
        term.binary(key);
        term.end()
    }

    /// The common hash of all keys of a bucket whose hash covers only the bucket
    /// (`chash_bucketonly_keyfun`).
    pub fn of_bucket(bucket: &Bucket) -> Self {
        let mut term = Term::begin();
        term.bucket(bucket);
        term.end()
    }

    /// Creates a hash from a digest.
    pub const fn from_bytes(digest: [u8; 20]) -> Self {
        Self(digest)
    }

    /// The digest, most significant byte first.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// The `bits` most significant bits; at most 32.
    pub(crate) fn leading_bits(&self, bits: u32) -> u32 {
        assert!((1..=32).contains(&bits), "between 1 and 32 bits");
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d]) >> (32 - bits)
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// Feeds a term to the hash piece by piece, so that a request does not build the encoded term just
/// to hash it.
struct Term(Sha1);

impl Term {
    fn begin() -> Self {
        Self(Sha1::new_with_prefix([FORMAT_VERSION]))
    }

    fn pair(&mut self) {
        self.0.update(PAIR);
    }

    fn binary(&mut self, bytes: &[u8]) {
        // Names and keys are far shorter than the 4 GiB that the length field allows
        // (`ombak_types::names`).
        let [a, b, c, d] = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
        self.0.update([BINARY, a, b, c, d]);
        self.0.update(bytes);
    }

    fn bucket(&mut self, bucket: &Bucket) {
        if !bucket.is_default_type() {
            self.pair();
            self.binary(&bucket.bucket_type);
        }
        self.binary(&bucket.name);
    }

    fn end(self) -> KeyHash {
        KeyHash(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RingSize;

    fn assert_placed(bucket: Bucket, key: &[u8], etf: &str, sha1: &str, at_64: u32, at_16: u32) {
        let hash = KeyHash::of_key(&bucket, key);
        assert_eq!(format!("{hash:?}"), sha1, "{bucket:?}");
        assert_eq!(hash.0[..], Sha1::digest(unhex(etf))[..], "{bucket:?}");
        assert_eq!(RingSize::new(64).unwrap().home_of(&hash), at_64, "{bucket:?}");
        assert_eq!(RingSize::new(16).unwrap().home_of(&hash), at_16, "{bucket:?}");
    }

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }

    /// The test vectors of docs/riak/semantics.md §18.
    #[test]
    fn keys_are_placed_as_riak_places_them() {
        assert_placed(
            Bucket::untyped("b"),
            b"k",
            "8368026d00000001626d000000016b",
            "6c38d93a9b70c325a8294365c4150ff68fe1a214",
            28,
            7,
        );
        assert_placed(
            Bucket::typed("t", "b"),
            b"k",
            "83680268026d00000001746d00000001626d000000016b",
            "8b06349aa84e04044860ead307a70d0e8ff9ce65",
            35,
            9,
        );
        assert_placed(
            Bucket::untyped("bucket"),
            b"key1",
            "8368026d000000066275636b65746d000000046b657931",
            "73c45fd26575fe229b3e961780df56069375e144",
            29,
            8,
        );
    }

    /// A key and its data directory on a live node with one replica per key (docs/riak/backends.md
    /// §2.9).
    #[test]
    fn a_recorded_key_lies_in_a_recorded_directory() {
        let size = RingSize::new(64).unwrap();
        let home = size.home_of(&KeyHash::of_key(&Bucket::untyped("bench_n1"), b"key00000098"));
        assert_eq!(home, 39);
    }

    #[test]
    fn a_bucket_only_hash_covers_the_bucket_term() {
        let untyped = KeyHash::of_bucket(&Bucket::untyped("b"));
        assert_eq!(untyped.0[..], Sha1::digest(unhex("836d0000000162"))[..]);
        let typed = KeyHash::of_bucket(&Bucket::typed("t", "b"));
        assert_eq!(typed.0[..], Sha1::digest(unhex("8368026d00000001746d0000000162"))[..]);
    }
}
