//! Counts the index entries that versions in the store of this node add and remove.
//!
//! Riak counts each write of a store that can have indexes. Here every store can, so only those
//! versions count that have entries or replace a version that had some. Nothing is counted under
//! the lock of a key, and nothing is allocated for objects without entries.

use super::engine::Engine;
use crate::partition::Written;
use ombak_types::Object;
use ombak_types::object::IndexEntry;
use std::collections::BTreeSet;

impl Engine {
    /// Counts a version that was appended. Called without the key's lock.
    pub(crate) fn count_entries(&self, written: &Written) {
        let (replaced, object) = (&written.replaced_entries, &written.object);
        if !written.is_new || replaced.is_empty() && object.index_entries().next().is_none() {
            return;
        }
        let (added, removed) = differences(replaced, object);
        if object.is_deleted() {
            self.stats.vnode_index_delete(removed);
        } else {
            self.stats.vnode_index_write(added, removed);
        }
    }
}

/// How many entries an object has that were not there before, and how many are there no more. An
/// entry of several siblings is one.
fn differences(before: &[IndexEntry], object: &Object) -> (u64, u64) {
    let before: BTreeSet<&IndexEntry> = before.iter().collect();
    let now: BTreeSet<&IndexEntry> = object.index_entries().collect();
    let kept = before.intersection(&now).count();
    ((now.len() - kept) as u64, (before.len() - kept) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::Sibling;

    fn entries(texts: &[&str]) -> Vec<IndexEntry> {
        texts.iter().map(|text| IndexEntry::parse(b"f_bin", text.as_bytes()).unwrap()).collect()
    }

    fn sibling(texts: &[&str]) -> Sibling {
        let mut sibling = Sibling::new("v");
        sibling.meta.indexes = entries(texts);
        sibling
    }

    #[test]
    fn entries_of_siblings_are_a_set() {
        let object = Object { siblings: vec![sibling(&["a", "b"]), sibling(&["b", "c"])], ..Object::default() };
        assert_eq!(differences(&[], &object), (3, 0));
        assert_eq!(differences(&entries(&["b", "b", "d", "e"]), &object), (2, 2));
        assert_eq!(differences(&entries(&["a", "b", "c"]), &object), (0, 0));
    }

    #[test]
    fn a_tombstone_has_no_entries() {
        let mut object = Object::new(Sibling::tombstone());
        object.siblings[0].meta.indexes = entries(&["a"]);
        assert_eq!(differences(&entries(&["a", "b"]), &object), (0, 2));
    }
}
