//! Records of namespaces on a node that is alone, and in a cluster.

use super::super::authority::{PropertyAuthority, ProposedChange, Undecided};
use super::super::namespaces::Namespaces;
use super::super::record_namespace::{
    RECORD_KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX, RecordBounds, RecordNamespace, RecordUpdate,
};
use super::*;
use bytes::Bytes;
use ombak_storage::fs::RealFs;
use ombak_types::PropMap;
use parking_lot::Mutex;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// A namespace whose values are short words. It remembers what it was told.
#[derive(Debug, Default)]
struct Words(Mutex<BTreeMap<Bytes, OpenRecord>>);

impl RecordNamespace for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn bounds(&self) -> RecordBounds {
        RecordBounds { records_max: 3, values_bytes_max: RECORD_VALUE_BYTES_MAX + 5 }
    }

    fn validate(&self, _key: &[u8], value: &str) -> Result<(), PropsError> {
        if value.is_empty() { Err(PropsError::BadRecord("a word is not empty".into())) } else { Ok(()) }
    }

    fn changed(&self, update: RecordUpdate<'_>) {
        let mut told = self.0.lock();
        assert_eq!(told.get(update.key), update.old, "what was told before is what was there");
        match update.new {
            Some(record) => drop(told.insert(update.key.clone(), record.clone())),
            None => drop(told.remove(update.key)),
        }
    }
}

impl Words {
    fn told(&self) -> Vec<(Bytes, OpenRecord)> {
        self.0.lock().clone().into_iter().collect()
    }
}

fn open(dir: &Path) -> (BucketRegistry, Arc<Words>) {
    let words = Arc::new(Words::default());
    let registry = BucketRegistry::open(Arc::new(RealFs), dir, "n@h", &PropMap::new()).unwrap();
    (registry.with_namespaces(Namespaces::new(vec![words.clone()])), words)
}

fn set(registry: &BucketRegistry, key: &[u8], value: &str) -> Result<(), PropsError> {
    registry.change_record("words", key, |_| Ok(RecordEdit::Set(value.into())))
}

fn remove(registry: &BucketRegistry, key: &[u8]) -> Result<(), PropsError> {
    registry.change_record("words", key, |_| Ok(RecordEdit::Remove))
}

fn listed(registry: &BucketRegistry) -> Vec<(Bytes, OpenRecord)> {
    registry.records_of("words").into_iter().collect()
}

fn change(key: &'static str, value: Option<&str>, version: u64) -> RecordChange {
    let record = value.map(|value| OpenRecord { value: value.into(), version });
    RecordChange::Open(RecordName::new("words", key.as_bytes()), record)
}

#[test]
fn records_survive_a_restart_and_the_observer_learns_of_them_again() {
    let dir = tempfile::tempdir().unwrap();
    let (registry, words) = open(dir.path());
    set(&registry, b"\xff%\x00", "one").unwrap();
    set(&registry, b"gone", "two").unwrap();
    remove(&registry, b"gone").unwrap();
    assert_eq!(words.told(), listed(&registry));
    drop(registry);
    let (registry, words) = open(dir.path());
    let record = OpenRecord { value: "one".into(), version: 0 };
    assert_eq!(listed(&registry), [(Bytes::from_static(b"\xff%\x00"), record)]);
    assert_eq!(words.told(), listed(&registry));
}

#[test]
fn what_a_namespace_refuses_and_what_exceeds_a_bound_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (registry, words) = open(dir.path());
    let refused = |key: &[u8], value: &str| {
        let set = set(&registry, key, value);
        assert!(matches!(set, Err(PropsError::BadRecord(_))), "{set:?}");
    };
    refused(b"k", "");
    refused(b"", "v");
    refused(&vec![b'k'; RECORD_KEY_BYTES_MAX + 1], "v");
    let longest = "v".repeat(RECORD_VALUE_BYTES_MAX);
    refused(b"k", &format!("{longest}v"));
    refused(b"k", "a\u{0}b");
    for key in [Vec::new(), vec![b'k'; RECORD_KEY_BYTES_MAX + 1]] {
        assert!(matches!(remove(&registry, &key), Err(PropsError::BadRecord(_))), "it is not sent to other members");
    }
    assert_eq!((listed(&registry), words.told()), (vec![], vec![]));
    assert!(!dir.path().join("buckets.json").exists());

    set(&registry, b"long", &longest).unwrap();
    set(&registry, b"2", "12345").unwrap();
    refused(b"3", "6");
    set(&registry, b"2", "1").unwrap();
    set(&registry, b"3", "2345").unwrap();
    remove(&registry, b"long").unwrap();
    set(&registry, b"4", "v").unwrap();
    assert_eq!(set(&registry, b"5", "v"), Err(PropsError::TooMany(3)));
    set(&registry, b"4", "other").unwrap();
    assert_eq!(words.told(), listed(&registry));
}

#[test]
fn records_of_an_unknown_namespace_are_kept_and_cannot_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (registry, _) = open(dir.path());
    set(&registry, b"k", "one").unwrap();
    drop(registry);
    let registry = BucketRegistry::open(Arc::new(RealFs), dir.path(), "n@h", &PropMap::new()).unwrap();
    for refused in [set(&registry, b"k", "two"), remove(&registry, b"k"), remove(&registry, b"other")] {
        assert_eq!(refused, Err(PropsError::BadRecord("this node knows no records of words".into())));
    }
    registry.put_function("f", "s", false).unwrap();
    drop(registry);
    let (registry, words) = open(dir.path());
    assert_eq!(registry.record("words", b"k").map(|record| record.value), Some("one".into()));
    assert_eq!(words.told(), listed(&registry));
}

#[test]
fn an_edit_sees_the_present_record_and_may_keep_it_or_fail() {
    let dir = tempfile::tempdir().unwrap();
    let (registry, _) = open(dir.path());
    let create = |value: &'static str| {
        registry.change_record("words", b"k", move |present| match present {
            None => Ok(RecordEdit::Set(value.into())),
            Some(_) => Err(PropsError::Refused("it exists".into())),
        })
    };
    create("one").unwrap();
    assert_eq!(create("two"), Err(PropsError::Refused("it exists".into())));
    registry.change_record("words", b"k", |_| Ok(RecordEdit::Keep)).unwrap();
    assert_eq!(registry.record("words", b"k").map(|record| record.value), Some("one".into()));
}

/// A cluster in which another node is faster once.
#[derive(Debug)]
struct Overtaken {
    registry: Arc<BucketRegistry>,
    first: Mutex<Vec<RecordChange>>,
    proposed: Mutex<Vec<ProposedChange>>,
}

impl PropertyAuthority for Overtaken {
    fn decide(&self, change: ProposedChange) -> Result<(), Undecided> {
        self.proposed.lock().push(change);
        if self.first.lock().is_empty() { Ok(()) } else { Err(Undecided::Overtaken) }
    }

    fn catch_up(&self) {
        self.registry.adopt(std::mem::take(&mut self.first.lock()));
    }
}

/// The first proposal names the version that this node knows, and the second the newer one.
#[test]
fn an_edit_that_another_node_overtakes_is_made_again_from_what_that_one_decided() {
    let dir = tempfile::tempdir().unwrap();
    let (registry, words) = open(dir.path());
    let registry = Arc::new(registry);
    let first = Mutex::new(vec![change("k", Some("ba"), 8)]);
    let authority = Arc::new(Overtaken { registry: registry.clone(), first, proposed: Mutex::default() });
    registry.follow(authority.clone(), vec![change("k", Some("a"), 7)]);
    let add = |present: Option<&OpenRecord>| {
        let word = present.map_or("", |record| &*record.value);
        Ok(RecordEdit::Set(format!("{word}c").into()))
    };
    registry.change_record("words", b"k", add).unwrap();
    let proposed: Vec<_> = authority.proposed.lock().iter().map(|it| (it.expected, it.change.clone())).collect();
    assert_eq!(proposed, [(Some(7), change("k", Some("ac"), 0)), (Some(8), change("k", Some("bac"), 0))]);
    assert_eq!(words.told(), listed(&registry));
}

/// The caller may have learned from another node that the record is gone.
#[test]
fn an_edit_that_refuses_what_is_outdated_is_made_again_from_what_is_decided() {
    let dir = tempfile::tempdir().unwrap();
    let (registry, _) = open(dir.path());
    let registry = Arc::new(registry);
    let (first, proposed) = (Mutex::default(), Mutex::default());
    let authority = Arc::new(Overtaken { registry: registry.clone(), first, proposed });
    registry.follow(authority.clone(), vec![change("k", Some("a"), 7)]);
    let create = || {
        registry.change_record("words", b"k", |present| match present {
            None => Ok(RecordEdit::Set("b".into())),
            Some(_) => Err(PropsError::Refused("it exists".into())),
        })
    };
    assert_eq!(create(), Err(PropsError::Refused("it exists".into())));
    *authority.first.lock() = vec![change("k", None, 8)];
    create().unwrap();
    let proposed: Vec<_> = authority.proposed.lock().iter().map(|it| (it.expected, it.change.clone())).collect();
    assert_eq!(proposed, [(None, change("k", Some("b"), 0))]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever a node learns, from operators or from the cluster, at once or in steps, its
    /// observer knows what the registry lists.
    #[test]
    fn an_observer_knows_what_is_listed(
        steps in prop::collection::vec(prop::collection::vec((0..4u8, prop::option::of("[a-c]{1,3}")), 0..4), 1..8),
        alone in 0..8usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (registry, words) = open(dir.path());
        let registry = Arc::new(registry);
        for (number, step) in steps.into_iter().enumerate() {
            let key = |key: u8| ["a", "b", "c", "d"][usize::from(key)];
            if number < alone {
                for (at, value) in &step {
                    // The bounds refuse a fourth record.
                    let _ = match value {
                        Some(value) => set(&registry, key(*at).as_bytes(), value),
                        None => remove(&registry, key(*at).as_bytes()),
                    };
                }
            } else {
                let decided = step.iter().map(|(at, value)| change(key(*at), value.as_deref(), number as u64)).collect();
                if number == alone {
                    let (first, proposed) = (Mutex::default(), Mutex::default());
                    let authority = Overtaken { registry: registry.clone(), first, proposed };
                    registry.follow(Arc::new(authority), decided);
                } else {
                    registry.adopt(decided);
                }
            }
            prop_assert_eq!(words.told(), listed(&registry));
        }
    }
}
