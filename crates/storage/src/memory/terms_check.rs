//! Compares the index entries of a memory store with the objects that justify them, and mends what
//! differs.

use super::store::Entry;
use super::terms::put_term_key;
use crate::backend::HeadTerms;
use crate::ledger::owner_of;
use crate::terms_check::{TermCursor, TermStep, VISIT_COST_BYTES};
use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use std::ops::Bound;

/// Goes on from a place, over at most `count_max` keys or index entries. The caller lets nobody
/// write meanwhile.
pub(super) fn step(
    entries: &OrdMap<Bytes, Entry>,
    index: &mut OrdSet<Bytes>,
    head_terms: &dyn HeadTerms,
    cursor: &TermCursor,
    count_max: usize,
) -> TermStep {
    let mut step = TermStep::at(cursor);
    let from = cursor.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
    let range = (from, Bound::Unbounded);
    let mut last = None;
    if cursor.in_terms {
        let visited: Vec<Bytes> = index.range(range).take(count_max).cloned().collect();
        for place in &visited {
            // An entry that names no object is left as it is, as in a ledger.
            let is_surplus = owner_of(place).is_some_and(|owner| {
                entries.get(&owner[..]).is_none_or(|entry| !justified(&owner, entry, head_terms).contains(place))
            });
            if is_surplus {
                index.remove(place);
                step.surplus += 1;
            }
        }
        step.visited = visited.len() as u64;
        last = visited.last().cloned();
    } else {
        for (key, entry) in entries.range(range).take(count_max) {
            for place in justified(key, entry, head_terms) {
                step.lacking += u64::from(index.insert(place).is_none());
            }
            step.visited += 1;
            last = Some(key.clone());
        }
    }
    step.cost_bytes = step.visited * VISIT_COST_BYTES;
    let is_end = step.visited < count_max as u64;
    step.pass(last, is_end);
    step
}

/// The index entries that an object justifies.
fn justified(key: &[u8], entry: &Entry, head_terms: &dyn HeadTerms) -> Vec<Bytes> {
    let mut places = Vec::new();
    let head = entry.head_with_terms();
    if !head.is_empty() {
        head_terms.visit(head, &mut |field, term| places.push(put_term_key(key, field, term)));
    }
    places.sort_unstable();
    places.dedup();
    places
}
