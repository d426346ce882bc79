//! Index entries of a memory store, with the keys that a ledger would use for them.

use crate::ledger::{put_escaped, put_term_prefix};
use bytes::{BufMut, Bytes, BytesMut};
use ombak_types::names::split_storage_key;

/// The ledger key of an index entry.
pub(super) fn put_term_key(key: &[u8], field: &[u8], term: &[u8]) -> Bytes {
    let bucket_len = split_storage_key(key).map_or(0, |(_, _, user_key)| key.len() - user_key.len());
    let (bucket, key) = key.split_at(bucket_len);
    let mut out = BytesMut::with_capacity(bucket.len() + field.len() + term.len() + key.len() + 8);
    put_term_prefix(bucket, field, &mut out);
    put_escaped(term, &mut out);
    out.put_slice(key);
    out.freeze()
}
