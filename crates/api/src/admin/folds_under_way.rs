//! The folds that operators have begun and that have not ended.

use ombak_kv::folds::FoldProgress;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The longest word by which a caller knows its fold again.
pub(super) const WATCH_BYTES_MAX: usize = 64;

/// The folds of operators. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct FoldsUnderWay(Arc<Mutex<Folds>>);

#[derive(Debug, Default)]
struct Folds {
    next: u64,
    folds: BTreeMap<u64, Fold>,
}

#[derive(Debug)]
struct Fold {
    what: &'static str,
    watch: Option<String>,
    progress: FoldProgress,
    began: Instant,
}

/// A fold that is under way until this is dropped.
pub(super) struct UnderWay {
    of: FoldsUnderWay,
    number: u64,
    pub(super) progress: FoldProgress,
}

impl FoldsUnderWay {
    /// A fold begins. `watch` is the word by which its caller knows it again.
    pub(super) fn begin(&self, what: &'static str, watch: Option<String>, began: Instant) -> UnderWay {
        let progress = FoldProgress::default();
        let mut folds = self.0.lock();
        folds.next += 1;
        let number = folds.next;
        folds.folds.insert(number, Fold { what, watch, progress: progress.clone(), began });
        UnderWay { of: self.clone(), number, progress }
    }

    /// All folds, the oldest first.
    pub(super) fn to_json(&self, now: Instant) -> Value {
        let folds = self.0.lock();
        let fold = |fold: &Fold| {
            let (done, homes) = fold.progress.homes();
            let elapsed_ms = now.saturating_duration_since(fold.began).as_millis() as u64;
            json!({
                "fold": fold.what, "watch": fold.watch, "partitions": homes, "partitions_done": done,
                "elapsed_ms": elapsed_ms,
            })
        };
        json!({ "folds": folds.folds.values().map(fold).collect::<Vec<_>>() })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.of.0.lock().folds.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_is_shown_until_it_ends_or_is_given_up() {
        let (folds, now) = (FoldsUnderWay::default(), Instant::now());
        let first = folds.begin("stats", Some("w".to_owned()), now);
        let second = folds.begin("erase", None, now);
        let shown = json!({ "fold": "stats", "watch": "w", "partitions": 0, "partitions_done": 0, "elapsed_ms": 0 });
        assert_eq!(folds.to_json(now)["folds"][0], shown);
        drop(first);
        assert_eq!(folds.to_json(now)["folds"].as_array().map(Vec::len), Some(1));
        drop(second);
        assert_eq!(folds.to_json(now), json!({ "folds": [] }));
    }
}
