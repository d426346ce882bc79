//! A store in memory, and a world without chance.

#![allow(dead_code)]

use ombak_security::console::{self, Answer, ConsoleError, Edit, RecordStore, World};
use ombak_security::{Roles, UnreadableRecord, validate};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The permissions that the recorded node knows.
pub const PERMISSIONS: [&str; 14] = [
    "riak_kv.get",
    "riak_kv.put",
    "riak_kv.delete",
    "riak_kv.index",
    "riak_kv.list_keys",
    "riak_kv.list_buckets",
    "riak_kv.mapreduce",
    "riak_kv.get_preflist",
    "riak_core.get_bucket",
    "riak_core.set_bucket",
    "riak_core.get_bucket_type",
    "riak_core.set_bucket_type",
    "search.query",
    "search.admin",
];

/// What happens just before a change is decided, once.
type Intruder = Box<dyn FnOnce(&MemoryStore)>;

/// Records in memory. Each value that is set must be valid, as in the metadata.
#[derive(Default)]
pub struct MemoryStore {
    pub records: RefCell<BTreeMap<String, String>>,
    /// Before which change somebody else comes first, and what that one does.
    pub intruder: RefCell<Option<(usize, Intruder)>>,
    /// After so many changes, all others fail.
    pub fails_after: Cell<Option<usize>>,
    pub changes: Cell<usize>,
}

impl RecordStore for MemoryStore {
    fn records(&self) -> Vec<(String, String)> {
        self.records.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn change(&self, key: &str, edit: &dyn Fn(Option<&str>) -> Result<Edit, ConsoleError>) -> Result<(), ConsoleError> {
        let number = self.changes.get();
        self.changes.set(number + 1);
        if self.fails_after.get().is_some_and(|changes| number >= changes) {
            return Err(ConsoleError::failed("the metadata have no majority".to_owned()));
        }
        loop {
            let present = self.records.borrow().get(key).cloned();
            let edited = edit(present.as_deref())?;
            let due = self.intruder.borrow().as_ref().is_some_and(|(before, _)| *before == number);
            if due {
                let (_, intrude) = self.intruder.borrow_mut().take().unwrap();
                intrude(self);
            }
            if self.records.borrow().get(key) != present.as_ref() {
                continue;
            }
            match edited {
                Edit::Keep => {}
                Edit::Remove => drop(self.records.borrow_mut().remove(key)),
                Edit::Set(value) => {
                    validate(key.as_bytes(), &value).unwrap_or_else(|why| panic!("{key}: {why}"));
                    self.records.borrow_mut().insert(key.to_owned(), value);
                }
            }
            return Ok(());
        }
    }
}

/// Numbers in place of random bytes. One suite of TLS is known.
#[derive(Default)]
pub struct TestWorld {
    next: Cell<u64>,
}

impl World for TestWorld {
    fn random_bytes(&self, bytes: &mut [u8]) -> Result<(), ConsoleError> {
        self.next.set(self.next.get() + 1);
        for (place, byte) in bytes.iter_mut().zip(self.next.get().to_be_bytes().into_iter().rev().cycle()) {
            *place = byte;
        }
        Ok(())
    }

    fn is_known_cipher(&self, name: &str) -> bool {
        name == "DHE-RSA-AES256-SHA256"
    }
}

/// A console on records in memory.
#[derive(Default)]
pub struct TestConsole {
    pub store: MemoryStore,
    pub world: TestWorld,
}

impl TestConsole {
    pub fn run(&self, words: &[&str]) -> Result<Answer, ConsoleError> {
        let arguments: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
        console::run(&self.store, &self.world, &PERMISSIONS, words[0], &arguments)
    }

    /// A command without blanks in its arguments, which must succeed.
    pub fn ok(&self, line: &str) -> Answer {
        let words: Vec<&str> = line.split(' ').collect();
        self.run(&words).unwrap_or_else(|why| panic!("{line}: {why}"))
    }

    /// A command without blanks in its arguments, which must fail.
    pub fn refused(&self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        match self.run(&words) {
            Err(why) => why.to_string(),
            Ok(answer) => panic!("{line}: {answer:?}"),
        }
    }

    pub fn roles(&self) -> Roles {
        let (roles, unreadable) = self.read();
        assert_eq!(unreadable, []);
        roles
    }

    pub fn read(&self) -> (Roles, Vec<UnreadableRecord>) {
        let records = self.store.records.borrow();
        Roles::from_records(records.iter().map(|(key, value)| (key.as_bytes(), value.as_str())))
    }
}
