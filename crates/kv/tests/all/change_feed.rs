//! Consumers that follow the changes of a node: they lag, fail, restart and begin anew.

use crate::support::Node;
use ombak_kv::hooks::{ChangeConsumer, Hooks};
use ombak_kv::{DeleteMode, Kv, KvConfig, OpenError, is_tombstone};
use ombak_storage::{
    BackendFactory, BitcaskFactory, Change, CursorLost, JournalConfig, KeyState, MemoryConfig, MemoryFactory, Origin,
};
use ombak_types::{Error, VectorClock};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Seen {
    /// The digest of each key and the origin of its change.
    keys: BTreeMap<(u32, Vec<u8>), (u64, Origin)>,
    removals: Vec<Origin>,
    begun: Vec<Option<CursorLost>>,
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
    fn name(&self) -> &'static str {
        "test"
    }

    fn begin_anew(&self, partition: u32, why: Option<CursorLost>) -> Result<(), Error> {
        let mut seen = self.seen.lock();
        self.called.notify_all();
        seen.begun.push(why);
        seen.keys.retain(|(home, _), _| *home != partition);
        Ok(())
    }

    fn apply(&self, partition: u32, changes: &[Change]) -> Result<(), Error> {
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
    assert!(consumer.seen.lock().begun.iter().all(Option::is_none));
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
        consumer.wait_until("it has what the stores have", |seen| {
            let of_round = |key: &[u8]| key.ends_with(format!("key {round}").as_bytes());
            seen.keys.len() == 1 && seen.keys.keys().all(|(_, key)| of_round(key))
        });
        runtime.block_on(node.close());
    }
    let lost = consumer.seen.lock().begun.iter().filter(|why| **why == Some(CursorLost::OtherStore)).count();
    assert!(lost >= 1, "at least in the partition of the first key");
}

/// A consumer that does nothing but have a name.
struct Named(&'static str);

impl ChangeConsumer for Named {
    fn name(&self) -> &'static str {
        self.0
    }

    fn begin_anew(&self, _: u32, _: Option<CursorLost>) -> Result<(), Error> {
        Ok(())
    }

    fn apply(&self, _: u32, _: &[Change]) -> Result<(), Error> {
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
        assert!(matches!(refused, Err(OpenError::ConsumerName { name, .. }) if name == wrong), "{refused:?}");
    }
    assert!(opened(&["search", "links"]).is_ok());
}
