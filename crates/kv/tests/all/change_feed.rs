//! Consumers that follow the changes of a node: they lag, fail, restart and begin anew.

use crate::support::Node;
use ombak_kv::hooks::{Anew, ChangeConsumer, ConsumerSource, FeedProgress, FollowedStore, Hooks};
use ombak_kv::{BucketRegistry, DeleteMode, Kv, KvConfig, OpenError, is_tombstone};
use ombak_storage::{
    BackendFactory, BitcaskFactory, Change, CursorLost, Detail, FeedCursor, JournalConfig, KeyState, MemoryConfig,
    MemoryFactory, Origin,
};
use ombak_types::{Error, VectorClock};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Seen {
    /// The digest of each key and the origin of its change.
    keys: BTreeMap<(u32, Vec<u8>), (u64, Origin)>,
    removals: Vec<Origin>,
    begun: Vec<Anew>,
    failures: usize,
}

/// Keeps what it has seen, as if on disk.
#[derive(Default)]
struct Consumer {
    seen: Mutex<Seen>,
    fails: AtomicBool,
    called: Condvar,
}

impl ChangeConsumer for Consumer {
    fn name(&self) -> &str {
        "test"
    }

    fn begin_anew(&self, store: &dyn FollowedStore, why: Anew) -> Result<(), Error> {
        let mut seen = self.seen.lock();
        self.called.notify_all();
        seen.begun.push(why);
        seen.keys.retain(|(home, _), _| *home != store.number());
        Ok(())
    }

    fn apply(&self, store: &dyn FollowedStore, changes: &[Change]) -> Result<(), Error> {
        let partition = store.number();
        let mut seen = self.seen.lock();
        self.called.notify_all();
        if self.fails.load(Ordering::SeqCst) {
            seen.failures += 1;
            return Err(Error::Overload);
        }
        for change in changes {
            let key = (partition, change.key().to_vec());
            match &change.state {
                KeyState::Stored(entry) => {
                    seen.keys.insert(key, (entry.digest, change.origin));
                }
                KeyState::Removed { .. } => {
                    seen.keys.remove(&key);
                    seen.removals.push(change.origin);
                }
            }
        }
        Ok(())
    }
}

impl Consumer {
    fn wait_until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = self.seen.lock();
        while !is_so(&seen) {
            let is_late = self.called.wait_until(&mut seen, deadline).timed_out();
            assert!(!is_late, "{what}");
        }
    }
}

fn config(dir: &Path, consumer: &Arc<Consumer>, stores: Arc<dyn BackendFactory>) -> KvConfig {
    let mut config = KvConfig::new("riak@127.0.0.1", dir, stores);
    config.delete_mode = DeleteMode::Immediate;
    config.io_threads = 2;
    config.ring_size = 8;
    config.hooks = Hooks { consumers: vec![consumer.clone()], ..Hooks::default() };
    config
}

fn bitcask(dir: &Path) -> Arc<dyn BackendFactory> {
    let fs = Arc::new(ombak_storage::fs::RealFs);
    Arc::new(BitcaskFactory::new(fs, dir.join("bitcask"), JournalConfig::default()).unwrap())
}

fn memory() -> Arc<dyn BackendFactory> {
    Arc::new(MemoryFactory::new(MemoryConfig::default()))
}

fn live(seen: &Seen) -> usize {
    seen.keys.values().filter(|(digest, _)| !is_tombstone(*digest)).count()
}

#[test]
fn a_consumer_follows_puts_and_deletes_and_goes_on_after_a_restart() {
    let (runtime, dir, consumer) =
        (crate::support::runtime(), tempfile::tempdir().unwrap(), Arc::<Consumer>::default());
    let node = Node::over(Kv::open(config(dir.path(), &consumer, bitcask(dir.path()))).unwrap());
    runtime.block_on(async {
        for n in 0..20 {
            node.put(&format!("key {n}"), "value", VectorClock::new()).await.unwrap();
        }
    });
    // A node that is alone has one copy of each key.
    consumer.wait_until("it has each key", |seen| live(seen) == 20);
    consumer.fails.store(true, Ordering::SeqCst);
    runtime.block_on(async {
        node.put("key 3", "newer", VectorClock::new()).await.unwrap();
        node.put("more", "value", VectorClock::new()).await.unwrap();
    });
    consumer.wait_until("it fails", |seen| seen.failures > 0);
    assert_eq!(live(&consumer.seen.lock()), 20, "it lags");
    runtime.block_on(node.close());
    drop(node);
    consumer.fails.store(false, Ordering::SeqCst);
    let begun = consumer.seen.lock().begun.len();
    let node = Node::over(Kv::open(config(dir.path(), &consumer, bitcask(dir.path()))).unwrap());
    consumer.wait_until("what came before the restart", |seen| live(seen) == 21);
    assert_eq!(consumer.seen.lock().begun.len(), begun, "it goes on from its place");
    assert!(consumer.seen.lock().begun.iter().all(|why| *why == Anew::First));
    runtime.block_on(async {
        node.delete("more").await.unwrap();
    });
    consumer.wait_until("the tombstones are reaped", |seen| seen.keys.len() == 20 && live(seen) == 20);
    runtime.block_on(node.close());
}

#[test]
fn changes_say_where_they_came_from() {
    let (runtime, dir, consumer) =
        (crate::support::runtime(), tempfile::tempdir().unwrap(), Arc::<Consumer>::default());
    let node = Node::over(Kv::open(config(dir.path(), &consumer, memory())).unwrap());
    let put = || {
        runtime.block_on(async {
            node.put("k", "value", VectorClock::new()).await.unwrap();
        });
    };
    // What comes with a fold over everything has no origin. Later puts of the key do not come with
    // one.
    put();
    consumer.wait_until("the first put", |seen| live(seen) == 1);
    let first: Vec<u64> = consumer.seen.lock().keys.values().map(|(digest, _)| *digest).collect();
    put();
    consumer.wait_until("the second put", |seen| {
        std::iter::zip(seen.keys.values(), &first).all(|((digest, _), first)| digest != first)
    });
    let origins: Vec<Origin> = consumer.seen.lock().keys.values().map(|(_, origin)| *origin).collect();
    assert_eq!(origins, [Origin::Coordinated]);
    runtime.block_on(async {
        node.delete("k").await.unwrap();
    });
    consumer.wait_until("the reaping", |seen| seen.keys.is_empty());
    consumer.wait_until("it says so", |seen| seen.removals == [Origin::Reap]);
    runtime.block_on(node.close());
}

#[test]
fn a_consumer_begins_anew_when_the_stores_are_others() {
    let (runtime, dir, consumer) =
        (crate::support::runtime(), tempfile::tempdir().unwrap(), Arc::<Consumer>::default());
    for round in 0..2 {
        let node = Node::over(Kv::open(config(dir.path(), &consumer, memory())).unwrap());
        runtime.block_on(async {
            node.put(&format!("key {round}"), "value", VectorClock::new()).await.unwrap();
        });
        let of_round = |key: &[u8]| key.ends_with(format!("key {round}").as_bytes());
        consumer.wait_until("it has what the stores have", |seen| {
            seen.keys.len() == 1 && seen.keys.keys().all(|(_, key)| of_round(key))
        });
        // A change shows that the consumer has a place in the partition of the key, and is no
        // longer told everything of it.
        let first: Vec<u64> = consumer.seen.lock().keys.values().map(|(digest, _)| *digest).collect();
        runtime.block_on(async {
            node.put(&format!("key {round}"), "other value", VectorClock::new()).await.unwrap();
        });
        consumer.wait_until("the second value", |seen| {
            std::iter::zip(seen.keys.values(), &first).all(|((digest, _), first)| digest != first)
        });
        runtime.block_on(node.close());
    }
    let lost = consumer.seen.lock().begun.iter().filter(|why| **why == Anew::Lost(CursorLost::OtherStore)).count();
    assert!(lost >= 1, "at least in the partition of the first key");
}

/// A consumer that does nothing but have a name.
struct Named(&'static str);

impl ChangeConsumer for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn begin_anew(&self, _: &dyn FollowedStore, _: Anew) -> Result<(), Error> {
        Ok(())
    }

    fn apply(&self, _: &dyn FollowedStore, _: &[Change]) -> Result<(), Error> {
        Ok(())
    }
}

/// Their places would lie in one file, and each would go on from the place of the other.
#[test]
fn a_node_with_two_consumers_of_one_name_does_not_start() {
    let opened = |names: &[&'static str]| {
        let dir = tempfile::tempdir().unwrap();
        let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), memory());
        let consumer = |name: &&'static str| -> Arc<dyn ChangeConsumer> { Arc::new(Named(name)) };
        config.hooks = Hooks { consumers: names.iter().map(consumer).collect(), ..Hooks::default() };
        Kv::open(config).map(|kv| kv.close())
    };
    for (names, wrong) in [(&["search", "links", "search"][..], "search"), (&["a/b"], "a/b"), (&["links", ""], "")] {
        let refused = opened(names);
        assert!(matches!(refused, Err(OpenError::ConsumerName { ref name, .. }) if name == wrong), "{refused:?}");
    }
    assert!(opened(&["search", "links"]).is_ok());
}

/// A consumer that keeps its places itself, together with the keys that it has. It reads the
/// present version of each key.
#[derive(Default)]
struct Keeper {
    state: Mutex<KeeperState>,
    called: Condvar,
}

#[derive(Default)]
struct KeeperState {
    now: Kept,
    kept: Kept,
    /// Whether it cannot keep anything at present.
    fails: bool,
    failures: usize,
    wants: BTreeSet<u32>,
    begun: Vec<(u32, Anew)>,
    told: usize,
}

#[derive(Clone, Default)]
struct Kept {
    /// The value of each key.
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    places: BTreeMap<u32, FeedCursor>,
}

impl Keeper {
    fn wait_until(&self, what: &str, is_so: impl Fn(&KeeperState) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut state = self.state.lock();
        while !is_so(&state) {
            let is_late = self.called.wait_until(&mut state, deadline).timed_out();
            assert!(!is_late, "{what}");
        }
    }

    fn values(state: &KeeperState) -> Vec<String> {
        state.kept.values.values().map(|value| String::from_utf8(value.clone()).unwrap()).collect()
    }
}

impl ChangeConsumer for Keeper {
    fn name(&self) -> &str {
        "keeper"
    }

    fn detail(&self) -> Detail {
        Detail::Keys
    }

    fn kept_places(&self) -> Option<BTreeMap<u32, FeedCursor>> {
        let mut state = self.state.lock();
        state.now = state.kept.clone();
        Some(state.kept.places.clone())
    }

    fn wants_everything(&self, store: &dyn FollowedStore) -> bool {
        self.state.lock().wants.contains(&store.number())
    }

    fn begin_anew(&self, store: &dyn FollowedStore, why: Anew) -> Result<(), Error> {
        self.state.lock().begun.push((store.number(), why));
        Ok(())
    }

    fn apply(&self, store: &dyn FollowedStore, changes: &[Change]) -> Result<(), Error> {
        let mut state = self.state.lock();
        for change in changes {
            let key = change.key().to_vec();
            match store.present(&key)? {
                Some(present) => drop(state.now.values.insert(key, present.object.siblings[0].value.to_vec())),
                None => drop(state.now.values.remove(&key)),
            }
        }
        Ok(())
    }

    fn told_everything(&self, store: &dyn FollowedStore) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.wants.remove(&store.number());
        state.told += 1;
        Ok(())
    }

    fn keep(&self, progress: &FeedProgress<'_>) -> Result<(), Error> {
        let mut state = self.state.lock();
        self.called.notify_all();
        if state.fails {
            state.failures += 1;
            return Err(Error::Overload);
        }
        state.now.places = progress.places.clone();
        state.kept = state.now.clone();
        Ok(())
    }
}

/// The consumers of the moment.
#[derive(Default)]
struct Source(Mutex<Vec<Arc<dyn ChangeConsumer>>>);

impl ConsumerSource for Source {
    fn consumers(&self, _: &BucketRegistry, _: &BTreeSet<u32>) -> Option<Vec<Arc<dyn ChangeConsumer>>> {
        Some(self.0.lock().clone())
    }
}

fn with_source(dir: &Path, source: &Arc<Source>) -> KvConfig {
    let mut config = config(dir, &Arc::default(), bitcask(dir));
    config.hooks = Hooks { consumer_sources: vec![source.clone()], ..Hooks::default() };
    config
}

#[test]
fn a_consumer_that_comes_later_keeps_its_places_and_goes_on_from_them() {
    let (runtime, dir, source) = (crate::support::runtime(), tempfile::tempdir().unwrap(), Arc::<Source>::default());
    let node = Node::over(Kv::open(with_source(dir.path(), &source)).unwrap());
    let put = |node: &Node, key: &str, value: &str| {
        runtime.block_on(async {
            node.put(key, value, VectorClock::new()).await.unwrap();
        });
    };
    put(&node, "a", "1");
    let keeper = Arc::<Keeper>::default();
    source.0.lock().push(keeper.clone());
    keeper.wait_until("it has what was there before it", |state| Keeper::values(state) == ["1"]);
    put(&node, "b", "2");
    keeper.wait_until("it has what came", |state| Keeper::values(state) == ["1", "2"]);
    // What it could not keep comes again.
    keeper.state.lock().fails = true;
    put(&node, "c", "3");
    keeper.wait_until("it fails", |state| state.failures > 0);
    assert_eq!(Keeper::values(&keeper.state.lock()), ["1", "2"]);
    keeper.state.lock().fails = false;
    keeper.wait_until("it is told again", |state| Keeper::values(state) == ["1", "2", "3"]);
    let begun = keeper.state.lock().begun.len();
    runtime.block_on(node.close());
    drop(node);
    let node = Node::over(Kv::open(with_source(dir.path(), &source)).unwrap());
    put(&node, "d", "4");
    keeper.wait_until("it goes on", |state| Keeper::values(state) == ["1", "2", "3", "4"]);
    let state = keeper.state.lock();
    assert_eq!(state.begun.len(), begun, "it began nowhere anew");
    assert!(state.begun.iter().all(|(_, why)| *why == Anew::First));
    drop(state);
    runtime.block_on(node.close());
}

#[test]
fn changes_go_on_while_a_consumer_is_told_everything() {
    let (runtime, dir, source) = (crate::support::runtime(), tempfile::tempdir().unwrap(), Arc::<Source>::default());
    let keeper = Arc::<Keeper>::default();
    source.0.lock().push(keeper.clone());
    let node = Node::over(Kv::open(with_source(dir.path(), &source)).unwrap());
    runtime.block_on(async {
        for n in 0..200 {
            node.put(&format!("key {n:03}"), "old", VectorClock::new()).await.unwrap();
        }
    });
    keeper.wait_until("it has everything", |state| state.kept.values.len() == 200);
    let told = keeper.state.lock().told;
    // It forgets the values, and asks for them.
    {
        let mut state = keeper.state.lock();
        state.now.values.clear();
        state.wants = (0..8).collect();
    }
    runtime.block_on(async {
        node.put("key 000", "new", VectorClock::new()).await.unwrap();
        node.delete("key 001").await.unwrap();
    });
    keeper.wait_until("it was told everything", |state| state.told == told + 8 && state.wants.is_empty());
    let has_all = |state: &KeeperState| state.kept.values.len() == 199 && Keeper::values(state)[0] == "new";
    keeper.wait_until("it has the present versions", has_all);
    assert!(keeper.state.lock().begun.iter().rev().take(8).all(|(_, why)| *why == Anew::Wanted));
    runtime.block_on(node.close());
}

/// Stands still, or panics, in the middle of its changes.
#[derive(Default)]
struct Troubled {
    stands_still: AtomicBool,
    panics: AtomicBool,
    seen: Mutex<BTreeSet<Vec<u8>>>,
    moved: Condvar,
}

impl Troubled {
    fn wait_until(&self, what: &str, is_so: impl Fn(&BTreeSet<Vec<u8>>) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = self.seen.lock();
        while !is_so(&seen) {
            assert!(!self.moved.wait_until(&mut seen, deadline).timed_out(), "{what}");
        }
    }

    fn go_on(&self) {
        let _seen = self.seen.lock();
        self.stands_still.store(false, Ordering::SeqCst);
        self.moved.notify_all();
    }
}

impl ChangeConsumer for Troubled {
    fn name(&self) -> &str {
        "troubled"
    }

    fn kept_places(&self) -> Option<BTreeMap<u32, FeedCursor>> {
        Some(BTreeMap::new())
    }

    fn begin_anew(&self, _: &dyn FollowedStore, _: Anew) -> Result<(), Error> {
        Ok(())
    }

    fn apply(&self, _: &dyn FollowedStore, changes: &[Change]) -> Result<(), Error> {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "it panics once, on purpose");
        let mut seen = self.seen.lock();
        self.moved.wait_while(&mut seen, |_| self.stands_still.load(Ordering::SeqCst));
        seen.extend(changes.iter().map(|change| change.key().to_vec()));
        self.moved.notify_all();
        Ok(())
    }
}

#[test]
fn a_consumer_that_stands_still_does_not_hold_up_another() {
    let (runtime, dir, source) = (crate::support::runtime(), tempfile::tempdir().unwrap(), Arc::<Source>::default());
    let (troubled, keeper) = (Arc::<Troubled>::default(), Arc::<Keeper>::default());
    troubled.stands_still.store(true, Ordering::SeqCst);
    source.0.lock().extend([troubled.clone() as Arc<dyn ChangeConsumer>, keeper.clone()]);
    let node = Node::over(Kv::open(with_source(dir.path(), &source)).unwrap());
    runtime.block_on(async {
        node.put("a", "1", VectorClock::new()).await.unwrap();
        node.put("b", "2", VectorClock::new()).await.unwrap();
    });
    keeper.wait_until("it has everything", |state| Keeper::values(state) == ["1", "2"]);
    assert!(troubled.seen.lock().is_empty());
    troubled.go_on();
    troubled.wait_until("it goes on", |seen| seen.len() == 2);
    runtime.block_on(node.close());
}

#[test]
fn a_consumer_that_panics_is_told_again() {
    let (runtime, dir, source) = (crate::support::runtime(), tempfile::tempdir().unwrap(), Arc::<Source>::default());
    let troubled = Arc::<Troubled>::default();
    troubled.panics.store(true, Ordering::SeqCst);
    source.0.lock().push(troubled.clone());
    let node = Node::over(Kv::open(with_source(dir.path(), &source)).unwrap());
    runtime.block_on(async {
        node.put("a", "1", VectorClock::new()).await.unwrap();
    });
    troubled.wait_until("it is told after it has panicked", |seen| seen.len() == 1);
    assert!(!troubled.panics.load(Ordering::SeqCst));
    runtime.block_on(node.close());
}
