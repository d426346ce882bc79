//! Changes that no key's lock holds back.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Counts the changes that a store makes by itself, so that a reader notices them.
#[derive(Debug, Default)]
pub(super) struct UnlockedChanges {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl UnlockedChanges {
    /// Makes a change.
    pub(super) fn make(&self, change: impl FnOnce()) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        // Whoever sees a part of the change sees that it has begun (`is_still`).
        fence(Ordering::SeqCst);
        change();
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// How many changes there were, if none is under way.
    pub(super) fn quiet(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }

    /// Whether no change has begun since it was quiet.
    pub(super) fn is_still(&self, quiet: u64) -> bool {
        fence(Ordering::SeqCst);
        self.begun.load(Ordering::SeqCst) == quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_from_its_begin_on() {
        let changes = UnlockedChanges::default();
        let before = changes.quiet().unwrap();
        assert!(changes.is_still(before));
        changes.make(|| assert!(changes.quiet().is_none() && !changes.is_still(before)));
        assert!(!changes.is_still(before));
        assert!(changes.is_still(changes.quiet().unwrap()));
    }
}
