//! A consumer of a store's feed, as a test needs it: it keeps the digest of each key.

use ombak_storage::{
    Backend, ChangesQuery, ChangesSince, CursorLost, Detail, FeedCursor, FeedStep, KeyState, Reach, Scope,
};
use std::collections::BTreeMap;

/// What is known of each key: the digest and the place of its version.
pub type Known = BTreeMap<Vec<u8>, (u64, u64)>;

#[derive(Clone, Default)]
pub struct Consumer {
    /// What is durable: a restart goes on from here.
    pub cursor: Option<FeedCursor>,
    pub known: Known,
}

impl Consumer {
    /// Reads everything that is new, some changes at a time. Returns why it had to begin anew, if
    /// it had to.
    pub fn catch_up(&mut self, store: &dyn Backend, count_max: usize) -> Option<CursorLost> {
        let mut why = None;
        for _ in 0..3 {
            let Some(from) = self.cursor.clone() else {
                self.begin_anew(store);
                continue;
            };
            match self.walk(store, &from, count_max, usize::MAX) {
                None => return why,
                Some(lost) => {
                    why = Some(lost);
                    self.cursor = None;
                }
            }
        }
        panic!("a cursor that was just made is lost: {why:?}");
    }

    /// Makes some steps of a walk. Returns why the cursor is lost.
    pub fn walk(
        &mut self,
        store: &dyn Backend,
        from: &FeedCursor,
        count_max: usize,
        steps: usize,
    ) -> Option<CursorLost> {
        let query = ChangesQuery { from, detail: Detail::Objects, reach: Reach::Durable, with_removals: true };
        let mut walk = match store.changes_since(&query).unwrap() {
            ChangesSince::Found(walk) => walk,
            ChangesSince::Lost(why) => return Some(why),
        };
        for _ in 0..steps {
            match walk.next(count_max, 5000).unwrap() {
                FeedStep::Some(changes) => changes.into_iter().for_each(|change| self.apply(change.state)),
                FeedStep::End => break,
                FeedStep::Lost(why) => return Some(why),
            }
            self.cursor = Some(walk.cursor());
        }
        self.cursor = Some(walk.cursor());
        None
    }

    fn apply(&mut self, state: KeyState) {
        match state {
            KeyState::Stored(entry) => {
                let stored = entry.stored.expect("objects are asked for");
                let body = stored.body.expect("objects are asked for");
                assert_eq!(stored.digest, super::digest_of(&body), "the body belongs to the version");
                self.known.insert(entry.key.to_vec(), (entry.digest, entry.seq));
            }
            // Its `seq` may be below that of the known version: a walk that begins again from an
            // older cursor hands out each storage tombstone of a key that is gone.
            KeyState::Removed { key, .. } => {
                self.known.remove(&key[..]);
            }
        }
    }

    fn begin_anew(&mut self, store: &dyn Backend) {
        self.cursor = Some(store.feed_cursor());
        store.sync(store.last_seq()).unwrap();
        self.known = fold(store);
    }
}

/// What a fold over everything finds.
pub fn fold(store: &dyn Backend) -> Known {
    let (mut snapshot, mut known) = (store.snapshot().unwrap(), Known::new());
    loop {
        let batch = snapshot.next(&Scope::EVERYTHING, Detail::Keys, 100).unwrap();
        if batch.is_empty() {
            return known;
        }
        known.extend(batch.into_iter().map(|entry| (entry.key.to_vec(), (entry.digest, entry.seq))));
    }
}
