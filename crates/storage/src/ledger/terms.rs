//! Index entries in order.

use super::keys::{LedgerKey, after_prefix, put_escaped, put_term_prefix, split_term};
use super::tree::{Tree, TreeView};
use crate::backend::HeadTerms;
use crate::error::StorageError;
use crate::fold::TermRange;
use bytes::{BufMut, Bytes, BytesMut};
use ombak_types::names::split_storage_key;
use std::ops::Bound;

/// The ledger keys of the index entries in a head, each once.
pub(crate) fn term_keys(key: &[u8], head: &[u8], terms: &dyn HeadTerms) -> Vec<LedgerKey> {
    if head.is_empty() {
        return Vec::new();
    }
    let bucket_len = split_storage_key(key).map_or(0, |(_, _, user_key)| key.len() - user_key.len());
    let mut keys: Vec<LedgerKey> = Vec::new();
    terms.visit(head, &mut |field, term| keys.push(LedgerKey::of_term(key, bucket_len, field, term)));
    keys.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes));
    keys.dedup_by(|a, b| a.bytes == b.bytes);
    keys
}

/// The bounds of a range of terms among the keys of a ledger.
pub(crate) struct TermBounds {
    prefix: Bytes,
    pub(crate) from: Bound<Bytes>,
    /// The end of the range: after every key of the last term, and before any longer term.
    end: Option<Bytes>,
}

impl TermBounds {
    pub(crate) fn new(range: &TermRange<'_>) -> Self {
        let mut prefix = BytesMut::new();
        put_term_prefix(range.bucket, range.field, &mut prefix);
        let behind = |term: &[u8], key: &[u8]| {
            let mut place = prefix.clone();
            put_escaped(term, &mut place);
            place.put_slice(key);
            place.freeze()
        };
        let from = match range.after {
            Some((term, key)) if term >= range.from => Bound::Excluded(behind(term, key)),
            _ => Bound::Included(behind(range.from, b"")),
        };
        let end = after_prefix(&behind(range.to, b""));
        Self { from, end, prefix: prefix.freeze() }
    }

    pub(crate) fn is_before_end(&self, place: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| place < &end[..])
    }

    /// The term and the key (within the bucket) in a ledger key.
    pub(crate) fn split<'a>(&self, place: &'a [u8]) -> Option<(Vec<u8>, &'a [u8])> {
        place.strip_prefix(&self.prefix[..]).and_then(split_term)
    }
}

/// Visits the terms and keys of a range until `visit` has enough.
pub(crate) fn visit_terms(
    tree: &Tree,
    view: &TreeView,
    range: &TermRange<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), StorageError> {
    let bounds = TermBounds::new(range);
    let mut failed = false;
    let start = bounds.from.as_ref().map(|from| &from[..]);
    let end = bounds.end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(&end[..]));
    tree.scan(view, start, end, |place, whole| {
        match bounds.split(if whole.is_empty() { place } else { &whole[..] }) {
            Some((term, key)) => visit(&term, key),
            None => {
                failed = true;
                false
            }
        }
    })?;
    if failed { Err(tree.damaged("an index entry that cannot be read")) } else { Ok(()) }
}
