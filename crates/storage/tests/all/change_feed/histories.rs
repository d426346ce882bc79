//! Random histories: what a consumer saw equals what a fold finds, on every backend.

use super::consumer::{Consumer, fold};
use super::*;
use proptest::prelude::*;

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16),
    /// Puts small values under so many keys from the first one on, each so far apart.
    PutMany(u16, u8, u8),
    DeleteMany(u16, u8, u8),
    Extend(u8),
    Delete(u8),
    /// A consumer reads everything that is new, with batches of this size.
    CatchUp(usize, u8),
    /// A consumer begins a walk and is killed before the end. It goes on from its cursor.
    Half(usize, u8),
    /// A consumer loses what it knows.
    Forget(usize),
    Maintain,
    /// Time goes on, so that stores with an age forget.
    Pass(u8),
    /// The store is opened anew, after a close or a kill.
    Restart(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..25u8, 0..900u16).prop_map(|(key, bytes)| Step::Put(key, bytes)),
        1 => many().prop_map(|(first, stride, count)| Step::PutMany(first, stride, count)),
        1 => many().prop_map(|(first, stride, count)| Step::DeleteMany(first, stride, count)),
        2 => (0..25u8).prop_map(Step::Extend),
        4 => (0..25u8).prop_map(Step::Delete),
        2 => (0..2usize, count()).prop_map(|(who, count)| Step::CatchUp(who, count)),
        1 => (0..2usize, count()).prop_map(|(who, count)| Step::Half(who, count)),
        1 => (0..60usize).prop_map(Step::Forget),
        3 => Just(Step::Maintain),
        1 => (1..60u8).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Restart),
    ]
}

/// Some of 400 keys, close together or far apart.
fn many() -> impl Strategy<Value = (u16, u8, u8)> {
    (0..400u16, prop_oneof![Just(1u8), 1..60u8], 1..120u8)
}

/// How many changes a consumer takes at once.
fn count() -> impl Strategy<Value = u8> {
    prop_oneof![1..20u8, Just(u8::MAX)]
}

struct History {
    kind: Kind,
    dir: tempfile::TempDir,
    fs: Arc<FaultyFs>,
    store: Arc<dyn Backend>,
    consumers: [Consumer; 2],
    now_secs: u64,
    writes: u32,
}

impl History {
    fn new(kind: Kind) -> Self {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(kind, &fs, dir.path());
        store.retain_removals(Some(0)).unwrap();
        Self { kind, dir, fs, store, consumers: Default::default(), now_secs: NOW_SECS, writes: 0 }
    }

    fn key(number: u16) -> Vec<u8> {
        // Keys of both lengths, for both stores of a multi store, and in the form of objects.
        format!("\x02key {number}").into_bytes()
    }

    fn keys((first, stride, count): (u16, u8, u8)) -> impl Iterator<Item = Vec<u8>> {
        (0..u16::from(count)).map(move |n| Self::key((first + n * u16::from(stride)) % 400))
    }

    /// Puts a value that no put had before.
    fn put(&mut self, key: &[u8], fill: u8, length: usize) {
        self.writes += 1;
        let mut value = self.writes.to_be_bytes().to_vec();
        value.resize(4 + length, fill);
        let (head, digest, body) = (head_of(&value), digest_of(&value), &[&value[..]]);
        let tstamp_secs = self.now_secs as u32;
        let write = Write { key, head: &head, body, digest, tstamp_secs, expires_secs: 0, has_terms: false };
        self.store.put_over_extended(&write).unwrap();
    }

    /// Merges may drop what both consumers have seen.
    fn retain(&self) {
        let cursors = self.consumers.iter().map(|consumer| consumer.cursor.as_ref().map_or(0, |cursor| cursor.seq));
        self.store.retain_removals(cursors.min()).unwrap();
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Put(key, bytes) => self.put(&Self::key(u16::from(*key)), *key, usize::from(*bytes)),
            Step::PutMany(first, stride, count) => {
                Self::keys((*first, *stride, *count)).for_each(|key| self.put(&key, 0, 0));
            }
            Step::DeleteMany(first, stride, count) => Self::keys((*first, *stride, *count)).for_each(|key| {
                self.store.delete(&key).unwrap();
            }),
            Step::Extend(key) => {
                let key = Self::key(u16::from(*key));
                let found = self.store.get_with_expired(&key, ReadMode::Blocking).unwrap();
                if let Some(body) = found.and_then(|found| found.body) {
                    extend(&*self.store, &key, &body, &[self.writes as u8; 5000]);
                }
            }
            Step::Delete(key) => {
                self.store.delete(&Self::key(u16::from(*key))).unwrap();
            }
            Step::CatchUp(who, count) => self.catch_up(*who, usize::from(*count)),
            Step::Half(who, count) => {
                let consumer = &mut self.consumers[*who];
                if let Some(from) = consumer.cursor.clone()
                    && consumer.walk(&*self.store, &from, usize::from(*count), 2).is_some()
                {
                    consumer.cursor = None;
                }
            }
            Step::Forget(who) => {
                if let Some(consumer) = self.consumers.get_mut(*who) {
                    *consumer = Consumer::default();
                }
            }
            Step::Maintain => (0..5).for_each(|_| self.store.maintain(self.now_secs).unwrap()),
            Step::Pass(secs) => self.now_secs += u64::from(*secs),
            Step::Restart(is_closed) => self.restart(*is_closed),
        }
        self.retain();
    }

    fn catch_up(&mut self, who: usize, count: usize) {
        let consumer = &mut self.consumers[who];
        let had_cursor = consumer.cursor.is_some();
        let lost = consumer.catch_up(&*self.store, count);
        assert!(!self.kind.lasts() || !had_cursor || lost.is_none(), "{:?}: {lost:?}", self.kind);
        assert_eq!(consumer.known, fold(&*self.store), "{:?}", self.kind);
    }

    fn restart(&mut self, is_closed: bool) {
        if is_closed {
            self.store.close().unwrap();
        }
        // The store is gone before the next one takes its lock.
        self.store = MemoryFactory::new(MemoryConfig::default()).open(0).unwrap();
        if !is_closed {
            self.fs = self.fs.restart(Loss::Nothing);
        }
        self.store = open(self.kind, &self.fs, self.dir.path());
        self.store.tell_time(self.now_secs);
        self.retain();
    }
}

fn run(kind: Kind, steps: &[Step]) {
    let mut history = History::new(kind);
    steps.iter().for_each(|step| history.take(step));
    (0..2).for_each(|who| history.catch_up(who, 7 + who * 500));
}

macro_rules! on_each {
    ($($name:ident $kind:ident;)*) => { proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
        $(#[test]
        fn $name(steps in prop::collection::vec(step(), 1..120)) {
            run(Kind::$kind, &steps);
        })*
    } };
}

on_each! {
    what_a_consumer_saw_equals_a_fold_on_bitcask Bitcask;
    what_a_consumer_saw_equals_a_fold_on_a_forgetting_store Forgetting;
    what_a_consumer_saw_equals_a_fold_on_leveled Leveled;
    what_a_consumer_saw_equals_a_fold_on_leveldb Leveldb;
    what_a_consumer_saw_equals_a_fold_in_memory Memory;
    what_a_consumer_saw_equals_a_fold_on_multi Multi;
}
