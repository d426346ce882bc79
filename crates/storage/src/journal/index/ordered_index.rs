//! An index that can visit keys and index entries in order.

use super::entry::Entry;
use super::key_index::KeyIndex;
use crate::error::StorageError;
use crate::fold::{KeyRange, TermRange};
use bytes::Bytes;

/// Reads the head of the present version of a key, which had this entry a moment ago.
pub(crate) type ReadHead<'a> = dyn Fn(&[u8], &Entry) -> Result<Bytes, StorageError> + 'a;

/// Reads the head of exactly this version of a key. None if the key has another one by now, or if
/// the version has expired: then nobody sees whether its index entries are there.
pub(crate) type ReadHeadOfVersion<'a> = dyn Fn(&[u8], &Entry) -> Result<Option<Bytes>, StorageError> + 'a;

/// What a check of index entries needs of the store around the index.
pub(crate) struct TermsSource<'a> {
    pub(crate) read_head: &'a ReadHeadOfVersion<'a>,
    /// Does something short while nobody writes to the store.
    pub(crate) without_writes: &'a dyn Fn(&mut dyn FnMut()),
}

/// An index that visits keys and index entries in order. It may have to build that order first.
pub(crate) trait OrderedIndex: KeyIndex {
    /// Whether the order is needed and not complete.
    fn wants_ordered_index(&self) -> bool;

    /// Continues to build what [`keys_in_order`](Self::keys_in_order) and
    /// [`terms_in_order`](Self::terms_in_order) need, by about `count_max` keys; true when it is
    /// complete. `read_head` reads the heads.
    fn build_ordered_index(&self, count_max: usize, read_head: &ReadHead<'_>) -> Result<bool, StorageError>;

    /// Visits the storage keys of a bucket in order until `visit` has enough.
    fn keys_in_order(
        &self,
        view: &Self::View,
        range: &KeyRange<'_>,
        visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> Result<(), StorageError>;

    /// Visits index entries in order until `visit` has enough. `visit` gets the term, and the key
    /// within the bucket.
    fn terms_in_order(
        &self,
        view: &Self::View,
        range: &TermRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError>;
}
