//! Copies one partition from one store to another.

use crate::wall_clock::now_secs;
use ombak_storage::{Backend, Detail, FoldEntry, Scope, StorageError, Write};

/// The number of versions that are in memory at a time.
const BATCH: usize = 100;

/// How much was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The number of keys.
    pub keys: u64,
    /// The size of keys, heads and values, in bytes.
    pub bytes: u64,
}

/// Copies every version, expired ones too, because they carry the clock that keeps older copies
/// away. Versions that have reached the age for which the old store is configured are left out:
/// that store is about to remove them, and the new one may have no such limit. `observe` gets the
/// number of bytes that each batch copied, and returns whether to continue. The result is `None` if
/// it returned false.
pub fn copy(
    from: &dyn Backend,
    to: &dyn Backend,
    observe: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Copied>, StorageError> {
    let mut snapshot = from.snapshot()?;
    let mut copied = Copied::default();
    loop {
        let batch = snapshot.next(&Scope::KEPT, Detail::Objects, BATCH)?;
        if batch.is_empty() {
            break;
        }
        let before = copied.bytes;
        for entry in batch {
            copied.keys += 1;
            copied.bytes += put(to, &entry)?;
        }
        if to.is_behind() {
            to.catch_up()?;
        }
        to.maintain(now_secs())?;
        if !observe(copied.bytes - before) {
            return Ok(None);
        }
    }
    if !from.complete() {
        // The copy misses what its source has lost, so the loss is recorded in the copy as well.
        to.note_loss(from.status().lost_ranges.max(1))?;
    }
    Ok(Some(copied))
}

/// Writes one version unchanged, and returns its size in bytes.
fn put(to: &dyn Backend, entry: &FoldEntry) -> Result<u64, StorageError> {
    let (Some(stored), Some(attrs)) = (&entry.stored, entry.attrs) else { return Err(StorageError::Closed) };
    let body = stored.body.clone().unwrap_or_default();
    to.put(&Write {
        key: &entry.key,
        head: &stored.head,
        body: &[&body],
        digest: stored.digest,
        tstamp_secs: attrs.tstamp_secs,
        expires_secs: attrs.expires_secs,
        has_terms: attrs.has_terms,
    })?;
    Ok((entry.key.len() + stored.head.len() + body.len()) as u64)
}
