//! What an index follower makes of what it is told, without an engine.

use super::association::Association;
use super::index_follower::IndexFollower;
use crate::catalog::IndexRecord;
use crate::counts::SearchCounts;
use ombak_kv::buckets::IndexUsers;
use ombak_kv::hooks::{Anew, AskedHome, ChangeConsumer, FeedProgress, FollowedStore, PresentVersion};
use ombak_search::schema::default_schema;
use ombak_search_index::{Index, WriterPool};
use ombak_storage::{Change, FeedCursor, KeyState};
use ombak_types::names::encode_storage_key;
use ombak_types::props::BucketProps;
use ombak_types::{Bucket, Error, Object, Sibling};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PARTITION: u32 = 3;

/// A store whose keys are there or not.
#[derive(Default)]
struct Store {
    keys: RefCell<BTreeSet<Vec<u8>>>,
    set_aside_to: Cell<u64>,
}

impl FollowedStore for Store {
    fn number(&self) -> u32 {
        PARTITION
    }

    fn set_aside_to(&self) -> u64 {
        self.set_aside_to.get()
    }

    fn present(&self, key: &[u8]) -> Result<Option<PresentVersion>, Error> {
        let object = Object { clock: Default::default(), siblings: vec![Sibling::new("text")] };
        let present = PresentVersion { object, props: Arc::new(BucketProps::default()) };
        Ok(self.keys.borrow().contains(key).then_some(present))
    }
}

fn key(bucket: &str, name: &str) -> Vec<u8> {
    let mut key = Vec::new();
    encode_storage_key(&Bucket::untyped(bucket.to_owned()), name.as_bytes(), &mut key);
    key
}

fn change(key: &[u8]) -> Change {
    Change { state: KeyState::Removed { key: key.to_vec().into(), seq: 1 }, origin: Default::default() }
}

fn association(buckets: &[&str]) -> Association {
    let buckets = buckets.iter().map(|bucket| Bucket::untyped((*bucket).to_owned())).collect();
    Association::of(&IndexUsers { types: Vec::new(), buckets, excluded: Vec::new() })
}

/// An index that follows a store.
struct World {
    follower: IndexFollower,
    counts: Arc<SearchCounts>,
    store: Store,
}

impl World {
    fn new(dir: &Path) -> Self {
        let schema = Arc::new(default_schema().unwrap());
        let index = Index::open(dir, schema.clone(), 1, WriterPool::new(15 << 20)).unwrap();
        let record = IndexRecord { schema: "s".to_owned(), xml: Vec::new(), n_val: 3, incarnation: 1, build: 1 };
        let (of, files) = ((Arc::new(record), schema), (index, dir.to_owned()));
        let counts = Arc::<SearchCounts>::default();
        let follower = IndexFollower::new("i".to_owned(), of, files, counts.clone());
        assert_eq!(follower.kept_places(), Some(BTreeMap::new()));
        Self { follower, counts, store: Store::default() }
    }

    fn puts(&self, key: &[u8]) {
        self.store.keys.borrow_mut().insert(key.to_vec());
    }

    fn is_told_of(&self, key: &[u8]) {
        self.follower.apply(&self.store, &[change(key)]).unwrap();
    }

    fn begins(&self, why: Anew) {
        self.follower.begin_anew(&self.store, why).unwrap();
    }

    fn is_told_everything_of(&self, keys: &[&[u8]]) {
        for key in keys {
            self.follower.apply_everything(&self.store, &[change(key)]).unwrap();
        }
        self.follower.told_everything(&self.store).unwrap();
    }

    /// Ends a turn, and returns how many documents the index has.
    fn keeps(&self) -> u64 {
        let places = BTreeMap::from([(PARTITION, FeedCursor::default())]);
        let up_to_date = BTreeMap::from([(PARTITION, Instant::now())]);
        self.follower.keep(&FeedProgress { places: &places, up_to_date: &up_to_date }).unwrap();
        self.follower.index.figures().documents
    }

    fn wants_everything(&self) -> bool {
        self.follower.wants_everything(&self.store)
    }
}

#[test]
fn changes_of_objects_are_counted_and_the_end_of_a_telling_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    world.follower.set_association(association(&["b"]));
    world.begins(Anew::First);
    world.is_told_everything_of(&[]);
    assert_eq!((world.keeps(), world.counts.indexed.total()), (0, 0));
    let a = key("b", "a");
    world.puts(&a);
    world.is_told_of(&a);
    assert_eq!((world.keeps(), world.counts.indexed.total()), (1, 1));
}

#[test]
fn versions_that_are_set_aside_go_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    world.follower.set_association(association(&["b"]));
    let (a, b) = (key("b", "a"), key("b", "b"));
    world.puts(&a);
    world.puts(&b);
    world.begins(Anew::First);
    world.is_told_everything_of(&[&a, &b]);
    assert_eq!(world.keeps(), 2);
    assert!(!world.wants_everything());
    // The store is told to set aside what it has. Only what came later is told.
    world.store.set_aside_to.set(9);
    world.store.keys.borrow_mut().remove(&a);
    assert!(world.wants_everything());
    world.begins(Anew::Wanted);
    world.is_told_everything_of(&[&b]);
    assert_eq!(world.keeps(), 1);
    assert!(!world.wants_everything());
    // They come back without a change of theirs.
    world.store.set_aside_to.set(0);
    world.puts(&a);
    assert!(world.wants_everything());
    world.begins(Anew::Wanted);
    world.is_told_everything_of(&[&a, &b]);
    assert_eq!(world.keeps(), 2);
    assert!(!world.wants_everything());
}

#[test]
fn an_interrupted_telling_is_wanted_again_although_versions_have_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    world.follower.set_association(association(&["b"]));
    let a = key("b", "a");
    world.puts(&a);
    world.begins(Anew::First);
    world.is_told_everything_of(&[&a]);
    assert_eq!(world.keeps(), 1);
    world.store.set_aside_to.set(9);
    world.begins(Anew::Wanted);
    world.store.set_aside_to.set(0);
    assert!(world.wants_everything());
    world.begins(Anew::Wanted);
    world.is_told_everything_of(&[&a]);
    assert_eq!(world.keeps(), 1);
    assert!(!world.wants_everything());
}

#[test]
fn a_bucket_that_comes_while_everything_is_told_is_told_of_once_more() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    world.follower.set_association(association(&["one"]));
    let (one, two) = (key("one", "k"), key("two", "k"));
    world.puts(&one);
    world.puts(&two);
    world.begins(Anew::First);
    // The key of the second bucket comes before its bucket is in the index.
    world.follower.apply_everything(&world.store, &[change(&two)]).unwrap();
    world.follower.set_association(association(&["one", "two"]));
    world.is_told_everything_of(&[&one]);
    assert_eq!(world.keeps(), 1);
    assert!(world.wants_everything(), "it may lack keys of the second bucket");
    assert!(world.follower.is_told_of(&[PARTITION]), "answers say that");
    world.begins(Anew::Wanted);
    world.is_told_everything_of(&[&one, &two]);
    assert!(world.follower.is_told_of(&[PARTITION]), "what it was told is not written yet");
    assert_eq!(world.keeps(), 2);
    assert!(!world.wants_everything() && !world.follower.is_told_of(&[PARTITION]));
}

#[test]
fn documents_of_a_store_that_was_replaced_go_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    world.follower.set_association(association(&["b"]));
    let (gone, new) = (key("b", "gone"), key("b", "new"));
    world.puts(&gone);
    world.begins(Anew::First);
    world.is_told_everything_of(&[&gone]);
    assert_eq!(world.keeps(), 1);
    world.store.keys.borrow_mut().clear();
    world.puts(&new);
    world.begins(Anew::First);
    // A change of the middle belongs to the new generation, too.
    world.is_told_of(&new);
    assert_eq!(world.keeps(), 2, "what was there stays until everything was told");
    world.is_told_everything_of(&[]);
    assert_eq!(world.keeps(), 1);
}

#[test]
fn nothing_is_written_after_the_files_were_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    world.follower.set_association(association(&["b"]));
    world.puts(&key("b", "k"));
    world.begins(Anew::First);
    world.is_told_of(&key("b", "k"));
    world.follower.close();
    let places = BTreeMap::new();
    let kept = world.follower.keep(&FeedProgress { places: &places, up_to_date: &BTreeMap::new() });
    assert!(matches!(kept, Err(Error::Stopping)), "{kept:?}");
    assert_eq!(world.follower.index.figures().documents, 0);
}

#[test]
fn a_partition_is_not_answered_for_before_what_filled_it_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    world.begins(Anew::First);
    world.is_told_everything_of(&[]);
    let begun = Instant::now();
    world.keeps();
    let fresh = |full_since| {
        let homes = [AskedHome { home: PARTITION, full_since }, AskedHome { home: PARTITION + 1, full_since }];
        world.follower.fresh_partitions(&homes, begun)
    };
    assert_eq!(fresh(begun), [PARTITION], "of the other partition nothing is known");
    assert!(fresh(Instant::now() + Duration::from_secs(1)).is_empty());
}
