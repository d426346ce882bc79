//! A snapshot in which versions with parts are whole, and parts are not seen.

use super::layout::{Found, PART_MARK, is_part};
use super::store::assemble;
use crate::backend::{ReadMode, Stored};
use crate::error::StorageError;
use crate::fold::{Detail, FoldEntry, KeyRange, Scope, Snapshot, TermEntry, TermRange};

pub(super) struct PartedSnapshot {
    inner: Box<dyn Snapshot>,
}

impl PartedSnapshot {
    pub(super) fn new(inner: Box<dyn Snapshot>) -> Self {
        Self { inner }
    }

    fn complete(&self, key: &[u8], stored: Stored, detail: Detail) -> Result<Stored, StorageError> {
        complete(key, stored, detail, |part| self.inner.read(part))
    }

    fn complete_all(&self, mut entries: Vec<FoldEntry>, detail: Detail) -> Result<Vec<FoldEntry>, StorageError> {
        for entry in &mut entries {
            if let Some(stored) = entry.stored.take() {
                entry.stored = Some(self.complete(&entry.key, stored, detail)?);
            }
        }
        Ok(entries)
    }
}

/// A version with its head and, if that is wanted, its whole body. `read` finds a part.
pub(super) fn complete(
    key: &[u8],
    stored: Stored,
    detail: Detail,
    read: impl Fn(&[u8]) -> Result<Option<Stored>, StorageError>,
) -> Result<Stored, StorageError> {
    match Found::of(stored)? {
        Found::Parted(stored, directory) if detail == Detail::Objects => {
            let body = assemble(key, &stored, directory, ReadMode::Blocking, read)?;
            Ok(Stored { body: Some(body), ..stored })
        }
        found => Ok(found.into_head()),
    }
}

impl Snapshot for PartedSnapshot {
    fn next(&mut self, scope: &Scope<'_>, detail: Detail, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        // A prefix of objects selects no part.
        let is_narrow = scope.prefix.first().is_some_and(|first| *first != PART_MARK);
        let is_object = |key: &[u8]| !is_part(key) && scope.class.is_none_or(|class| class(key));
        let objects = if is_narrow { *scope } else { Scope { class: Some(&is_object), ..*scope } };
        let entries = self.inner.next(&objects, detail, count_max)?;
        self.complete_all(entries, detail)
    }

    fn keys_in_order(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        let entries = self.inner.keys_in_order(range, count_max)?;
        self.complete_all(entries, Detail::Heads)
    }

    fn terms_in_order(&mut self, range: &TermRange<'_>, count_max: usize) -> Result<Vec<TermEntry>, StorageError> {
        self.inner.terms_in_order(range, count_max)
    }

    fn may_expire(&self) -> bool {
        self.inner.may_expire()
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        self.inner.read(key)?.map(|stored| self.complete(key, stored, Detail::Objects)).transpose()
    }
}
