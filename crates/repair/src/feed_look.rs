//! Asks the feed of a store whether anything of interest has changed, without a consumer.

use ombak_storage::{Backend, ChangesQuery, ChangesSince, Detail, FeedStep, KeyState, Reach};

/// The most changes that one step looks at.
const CHANGES_MAX: usize = 1_000;
/// The most bytes of files that one step reads.
const BYTES_MAX: u64 = 1 << 20;
/// The most steps. A walk over the index is better than a longer look.
const STEPS_MAX: usize = 8;

/// Whether a key that `is_wanted` has a version that was appended after `since_seq`; none if a
/// short look does not tell. Blocks.
///
/// The index may have versions in files that the store has lost. A fold finds them, and the feed
/// does not.
pub(crate) fn has_change_after(store: &dyn Backend, since_seq: u64, is_wanted: impl Fn(&[u8]) -> bool) -> Option<bool> {
    let from = store.feed_cursor().not_after(since_seq);
    if from.stores.iter().any(|place| place.lost_ranges > 0) {
        return None;
    }
    let query = ChangesQuery { from: &from, detail: Detail::Keys, reach: Reach::Appended, with_removals: false };
    let Ok(ChangesSince::Found(mut walk)) = store.changes_since(&query) else { return None };
    for _ in 0..STEPS_MAX {
        match walk.next(CHANGES_MAX, BYTES_MAX) {
            Ok(FeedStep::Some(changes)) => {
                let is_found = |change: &ombak_storage::Change| match &change.state {
                    KeyState::Stored(entry) => is_wanted(&entry.key),
                    KeyState::Removed { .. } => false,
                };
                if changes.iter().any(is_found) {
                    return Some(true);
                }
            }
            Ok(FeedStep::End) => return Some(false),
            Ok(FeedStep::Lost(_)) | Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::FileSystem;
    use ombak_storage::fs::sim::FaultyFs;
    use ombak_storage::{BackendFactory, BitcaskFactory, JournalConfig, Write};
    use std::path::Path;

    #[test]
    fn a_short_look_finds_what_was_appended_later() {
        let factory = BitcaskFactory::new(FaultyFs::new(1), Path::new("/data"), JournalConfig::default()).unwrap();
        let store = factory.open(0).unwrap();
        let put = |key: &[u8], body: &[u8]| {
            let (head, body) = (b"head", &[body]);
            let write = Write { key, head, body, digest: 2, tstamp_secs: 1, expires_secs: 0, has_terms: false };
            store.put(&write).unwrap().seq
        };
        let is_b = |key: &[u8]| key == b"b";
        let (_, first_b) = (put(b"a", b"1"), put(b"b", b"1"));
        assert_eq!(has_change_after(&*store, 0, is_b), Some(true));
        assert_eq!(has_change_after(&*store, first_b, is_b), Some(false));
        put(b"a", b"2");
        assert_eq!(has_change_after(&*store, first_b, is_b), Some(false));
        let second_b = put(b"b", b"2");
        assert_eq!(has_change_after(&*store, first_b, is_b), Some(true));
        for n in 0..20u8 {
            put(&[n], &vec![n; BYTES_MAX as usize]);
        }
        assert_eq!(has_change_after(&*store, second_b, is_b), None, "there is too much to look at");
    }

    #[test]
    fn a_look_does_not_tell_what_lost_files_had() {
        let fs = FaultyFs::new(1);
        let open = || BitcaskFactory::new(fs.clone(), Path::new("/data"), JournalConfig::default()).unwrap();
        let (head, body) = (b"head", &[&b"body"[..]]);
        let write = Write { key: b"a", head, body, digest: 2, tstamp_secs: 1, expires_secs: 0, has_terms: false };
        let store = open().open(0).unwrap();
        let first = store.put(&write).unwrap().seq;
        store.put(&Write { key: b"b", ..write }).unwrap();
        store.close().unwrap();
        drop(store);
        let dir = Path::new("/data/0");
        let names = fs.list(dir).unwrap();
        let data: Vec<&String> = names.iter().filter(|name| name.ends_with(".data")).collect();
        let [file] = data[..] else { panic!("one file of data: {names:?}") };
        // The header of the file, beyond what a start corrects.
        for bit in [3, 12, 21] {
            fs.flip_bit(&dir.join(file), bit).unwrap();
        }
        let store = open().open(0).unwrap();
        assert!(store.status().lost_ranges > 0);
        assert_eq!(has_change_after(&*store, first, |key| key == b"b"), None);
    }
}
