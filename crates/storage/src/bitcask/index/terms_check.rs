//! Compares the ordered index with the keys in memory and with the index entries in their heads,
//! and mends what differs.
//!
//! ```text
//!   keys in memory   ---->  their keys and terms in the order      missing or wrong: set anew
//!   keys in the order --->  the keys in memory                     not there: removed
//!                           their index entries in the order       missing: added
//!   index entries    ---->  their keys in the order                not justified: removed
//! ```
//!
//! Invariants:
//! * A key is mended while no write can be made, and only if its version is still the one whose
//!   head was read. So a put that is under way is no fault.
//! * No lock is held while a head is read.
//! * A key whose head cannot be read, or whose version has expired, is left as it is.

use super::key_place::KeyPlace;
use super::{HashedKey, Index};
use crate::bitcask::ordered_index::OrderedIndexTree;
use crate::error::StorageError;
use crate::journal::TermsSource;
use crate::ledger::LedgerKey;
use crate::terms_check::{STEP_BYTES_MAX, TermCursor, TermStep, VISIT_COST_BYTES};
use bytes::Bytes;

/// How often a key is looked at that is written again and again. The next walk looks at it, too.
const TRIES_MAX: usize = 3;
/// How many keys are taken from the index in memory at a time.
const KEYS_AT_ONCE: usize = 16;
/// What a read of a head costs beside its bytes. Records lie about in the order in which the index
/// has their keys, so most of such reads share blocks of the disk.
const READ_COST_BYTES: u64 = 1 << 10;

/// What is compared.
pub(super) struct TermsCheck<'a> {
    pub(super) index: &'a Index,
    pub(super) order: &'a OrderedIndexTree,
    pub(super) source: &'a TermsSource<'a>,
}

impl TermsCheck<'_> {
    /// Goes on from a place, over at most `count_max` keys or index entries. Blocks.
    pub(super) fn step(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        let in_memory = match &cursor.after {
            _ if cursor.in_terms => None,
            None => Some(KeyPlace::default()),
            Some(after) => KeyPlace::decode(after),
        };
        match in_memory {
            Some(place) => self.keys_in_memory(cursor, place, count_max),
            None => self.entries_of_order(cursor, count_max),
        }
    }

    fn keys_in_memory(
        &self,
        cursor: &TermCursor,
        mut place: KeyPlace,
        count_max: usize,
    ) -> Result<TermStep, StorageError> {
        let mut step = TermStep::at(cursor);
        while !place.is_end() && step.visited < count_max as u64 && step.cost_bytes < STEP_BYTES_MAX {
            let wanted = KEYS_AT_ONCE.min(count_max - step.visited as usize);
            for key in self.index.keys_from(&mut place, wanted) {
                self.check_key(&key, &mut step)?;
            }
        }
        // The keys of the order follow those in memory.
        let next = if place.is_end() { LedgerKey::of_key(&[]).bytes } else { place.encode() };
        step.next.after = Some(next);
        Ok(step)
    }

    /// Compares a key in memory with the order.
    fn check_key(&self, key: &[u8], step: &mut TermStep) -> Result<(), StorageError> {
        step.visited += 1;
        for _ in 0..TRIES_MAX {
            step.cost_bytes += VISIT_COST_BYTES;
            // If it was removed, the walk over the order finds what it has left there.
            let Some(entry) = self.index.get(HashedKey::new(key)) else { return Ok(()) };
            let mut head = Bytes::new();
            if entry.position.has_terms {
                match (self.source.read_head)(key, &entry) {
                    Ok(Some(read)) => head = read,
                    Ok(None) => continue,
                    Err(error) if error.is_unreadable_version() => return Ok(()),
                    Err(error) => return Err(error),
                }
                step.cost_bytes += READ_COST_BYTES + head.len() as u64;
            }
            if self.order.agrees(key, &head)? {
                return Ok(());
            }
            let mut mended = None;
            (self.source.without_writes)(&mut || {
                let now = self.index.get(HashedKey::new(key));
                if now.is_some_and(|now| now.seq == entry.seq) {
                    mended = Some(self.order.set(key, Some(&head)));
                }
            });
            if let Some(mended) = mended {
                let mended = mended?;
                step.lacking += mended.added;
                step.surplus += mended.removed;
                return Ok(());
            }
        }
        Ok(())
    }

    fn entries_of_order(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        let is_there = |key: &[u8]| self.index.get(HashedKey::new(key)).is_some();
        let (mut step, strays) = self.order.check_terms(cursor, count_max, &is_there)?;
        for key in strays {
            let mut removed = None;
            (self.source.without_writes)(&mut || {
                if !is_there(&key) {
                    removed = Some(self.order.set(&key, None));
                }
            });
            step.surplus += removed.transpose()?.map_or(0, |removed| removed.removed);
        }
        Ok(step)
    }
}
