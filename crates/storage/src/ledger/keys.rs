//! The keys of a ledger.
//!
//! ```text
//! k storage_key                                 a key: its entry
//! i bucket_prefix field 00 00 term 00 00 key    a term: nothing, or what did not fit
//! m name                                        notes of the ledger about itself
//! ```
//!
//! In `field` and `term` a zero byte is followed by ff. So ledger keys sort in the order of the
//! terms, and the two zeros after a term sort before everything that could follow in a longer term.
//!
//! The library takes keys of at most 65,535 bytes. A longer key is truncated, with a hash of it
//! after the truncation; the value then begins with the whole key. Keys that share their first
//! 65,000 bytes have no defined order among themselves.

use super::tree::KEY_BYTES_MAX;
use crate::fold::KeyRange;
use bytes::{BufMut, Bytes, BytesMut};
use std::ops::Bound;
use xxhash_rust::xxh3::xxh3_128;

const KEY: u8 = b'k';
const TERM: u8 = b'i';
const NOTE: u8 = b'm';
/// What all terms begin with.
pub(super) const TERMS_PREFIX: &[u8] = &[TERM];
const HASH_BYTES: usize = 16;
/// The length of a truncated key without its hash.
const CUT_BYTES: usize = KEY_BYTES_MAX - HASH_BYTES - 500;

/// A ledger key, and the whole key if it must be stored in the value.
pub(crate) struct LedgerKey {
    pub(crate) bytes: Bytes,
    /// The whole ledger key, if `bytes` is truncated.
    pub(crate) whole: Option<Bytes>,
}

impl LedgerKey {
    fn new(bytes: BytesMut) -> Self {
        let whole = bytes.freeze();
        if whole.len() <= KEY_BYTES_MAX {
            return Self { bytes: whole, whole: None };
        }
        let mut cut = BytesMut::with_capacity(CUT_BYTES + HASH_BYTES);
        cut.put_slice(&whole[..CUT_BYTES]);
        cut.put_slice(&xxh3_128(&whole).to_be_bytes());
        Self { bytes: cut.freeze(), whole: Some(whole) }
    }

    /// The ledger key for a key of the store.
    pub(crate) fn of_key(key: &[u8]) -> Self {
        let mut bytes = BytesMut::with_capacity(1 + key.len());
        bytes.put_u8(KEY);
        bytes.put_slice(key);
        Self::new(bytes)
    }

    /// Whether the ledger key for a key of the store is truncated. Others are in the order of the
    /// keys.
    pub(super) fn is_cut(key: &[u8]) -> bool {
        1 + key.len() > KEY_BYTES_MAX
    }

    /// The ledger key for a term of a key of the store. The first `bucket_len` bytes of the key are
    /// its bucket.
    pub(crate) fn of_term(key: &[u8], bucket_len: usize, field: &[u8], term: &[u8]) -> Self {
        let (bucket, key) = key.split_at(bucket_len.min(key.len()));
        let mut bytes = BytesMut::with_capacity(1 + bucket.len() + field.len() + term.len() + key.len() + 8);
        put_term_prefix(bucket, field, &mut bytes);
        put_escaped(term, &mut bytes);
        bytes.put_slice(key);
        Self::new(bytes)
    }
}

/// Appends the prefix of all terms of a field of a bucket.
pub(crate) fn put_term_prefix(bucket: &[u8], field: &[u8], out: &mut BytesMut) {
    out.put_u8(TERM);
    out.put_slice(bucket);
    put_escaped(field, out);
}

/// The ledger key of a note.
pub(crate) fn note(name: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + name.len());
    bytes.put_u8(NOTE);
    bytes.put_slice(name);
    bytes.freeze()
}

/// The first ledger key for keys that begin with `prefix`.
pub(super) fn keys_from(prefix: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + prefix.len());
    bytes.put_u8(KEY);
    bytes.put_slice(prefix);
    bytes.truncate(KEY_BYTES_MAX);
    bytes.freeze()
}

/// The bounds of a range of a bucket's keys in a ledger.
pub(crate) struct KeyBounds {
    from: Bound<Bytes>,
    to: Bound<Bytes>,
}

impl KeyBounds {
    pub(crate) fn new(range: &KeyRange<'_>) -> Self {
        let key = |key: &[u8]| LedgerKey::of_key(&[range.bucket, key].concat()).bytes;
        let all = keys_from(range.bucket);
        let from = match range.from {
            Bound::Unbounded => Bound::Included(all.clone()),
            bound => bound.map(key),
        };
        let to = match range.to {
            Bound::Unbounded => after_prefix(&all).map_or(Bound::Unbounded, Bound::Excluded),
            bound => bound.map(key),
        };
        Self { from, to }
    }

    pub(crate) fn from(&self) -> Bound<&[u8]> {
        self.from.as_ref().map(|key| &key[..])
    }

    pub(crate) fn to(&self) -> Bound<&[u8]> {
        self.to.as_ref().map(|key| &key[..])
    }
}

/// The key of the store in a ledger key of kind `k`.
pub(crate) fn store_key(ledger_key: &[u8]) -> Option<&[u8]> {
    ledger_key.strip_prefix(&[KEY])
}

/// The term and the key (without its bucket) that follow the prefix of a field.
pub(super) fn split_term(behind_prefix: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut term = Vec::new();
    let mut rest = behind_prefix;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        let (before, after) = rest.split_at(zero);
        term.extend_from_slice(before);
        match after.get(1)? {
            0 => return Some((term, after.get(2..)?)),
            0xff => term.push(0),
            _ => return None,
        }
        rest = after.get(2..)?;
    }
}

/// Appends bytes in an order-preserving form with an end mark.
pub(crate) fn put_escaped(bytes: &[u8], out: &mut BytesMut) {
    for byte in bytes {
        out.put_u8(*byte);
        if *byte == 0 {
            out.put_u8(0xff);
        }
    }
    out.put_slice(&[0, 0]);
}

/// The smallest byte string that is greater than all strings that begin with `prefix`; none if
/// there is none.
pub(super) fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn term_key(field: &[u8], term: &[u8], key: &[u8]) -> Bytes {
        let whole = [b"\x02\0\x01b", key].concat();
        LedgerKey::of_term(&whole, 4, field, term).bytes
    }

    /// Bytes with many zeros, which the escaping has to handle.
    fn tricky() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![3 => Just(0u8), 2 => Just(0xffu8), 1 => Just(1u8), 1 => any::<u8>()], 0..6)
    }

    proptest! {
        #[test]
        fn terms_are_in_order_and_come_back(
            one in (tricky(), tricky()), other in (tricky(), tricky()),
        ) {
            let (a, b) = (term_key(b"f_bin", &one.0, &one.1), term_key(b"f_bin", &other.0, &other.1));
            prop_assert_eq!(a.cmp(&b), one.cmp(&other));
            let mut prefix = BytesMut::new();
            put_term_prefix(b"\x02\0\x01b", b"f_bin", &mut prefix);
            let (term, key) = split_term(a.strip_prefix(&prefix[..]).unwrap()).unwrap();
            prop_assert_eq!((term, key.to_vec()), one);
        }

        #[test]
        fn fields_are_apart(one in tricky(), other in tricky()) {
            prop_assume!(one != other);
            let mut prefix = BytesMut::new();
            put_term_prefix(b"\x02\0\x01b", &one, &mut prefix);
            prop_assert!(!term_key(&other, b"t", b"k").starts_with(&prefix));
        }

        #[test]
        fn nothing_that_begins_so_is_after_what_follows(prefix in tricky(), more in tricky()) {
            let longer = [&prefix[..], &more[..]].concat();
            match after_prefix(&prefix) {
                Some(after) => prop_assert!(after[..] > longer[..] && after[..] > prefix[..]),
                None => prop_assert!(prefix.iter().all(|byte| *byte == 0xff)),
            }
        }
    }

    #[test]
    fn long_keys_are_cut_and_stay_apart() {
        let long = |end: &str| [&vec![b'x'; 100_000][..], end.as_bytes()].concat();
        let (a, b) = (LedgerKey::of_key(&long("a")), LedgerKey::of_key(&long("b")));
        assert!(a.bytes != b.bytes && a.bytes.len() <= KEY_BYTES_MAX);
        assert_eq!(a.whole.as_deref().and_then(store_key), Some(&long("a")[..]));
        assert!(LedgerKey::of_key(b"short").whole.is_none());
    }
}
