//! Helpers that the storage tests share.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "each test file uses a part of it")]

use ombak_storage::{Appended, Backend, Detail, MergeConfig, ReadMode, Scope, Snapshot, StorageError, Stored, Write};
use std::path::Path;

pub const NOW_SECS: u64 = 1_000_000;

/// A temporary directory for ledgers, which are on the real file system. It is in memory if
/// possible, so that thousands of stores do not wait for a disk.
pub fn scratch_dir() -> tempfile::TempDir {
    let in_memory = std::path::Path::new("/dev/shm");
    let made = tempfile::tempdir_in(in_memory);
    made.or_else(|_| tempfile::tempdir()).expect("a directory for temporary files")
}

/// Copies a directory without a child process. Between fork and exec, a child holds every lock of
/// its parent, so stores of other tests would fail to take theirs.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if from.is_dir() {
            copy_dir(&from, &to.join(name));
        } else {
            std::fs::copy(&from, to.join(name)).unwrap();
        }
    }
}

/// Merges whenever a little is dead and without a rate limit, so that a short test covers
/// everything.
pub fn eager_merges() -> MergeConfig {
    MergeConfig {
        check_interval_secs: 0,
        trigger_fragmentation_percent: 20,
        threshold_fragmentation_percent: 10,
        io_bytes_per_sec: 1 << 40,
        ..MergeConfig::default()
    }
}

pub fn put(store: &dyn Backend, key: &[u8], value: &[u8]) -> Result<Appended, StorageError> {
    put_at(store, key, value, NOW_SECS as u32)
}

pub fn put_at(store: &dyn Backend, key: &[u8], value: &[u8], tstamp_secs: u32) -> Result<Appended, StorageError> {
    let (left, right) = value.split_at(value.len() / 2);
    let head = head_of(value);
    let (digest, body) = (digest_of(value), &[left, right]);
    store.put(&Write { key, head: &head, body, digest, tstamp_secs, expires_secs: 0, has_terms: false })
}

/// Heads and digests are computed from values, so that every read can be checked for consistency.
pub fn head_of(value: &[u8]) -> Vec<u8> {
    format!("head of {} bytes {:?}", value.len(), value.first()).into_bytes()
}

pub fn digest_of(value: &[u8]) -> u64 {
    value.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The value, after a check that head, body and digest belong together.
pub fn value_of(stored: Option<Stored>) -> Option<Vec<u8>> {
    let stored = stored?;
    let body = stored.body.expect("asked for").to_vec();
    assert_eq!(stored.head, head_of(&body));
    assert_eq!(stored.digest, digest_of(&body));
    Some(body)
}

pub fn get(store: &dyn Backend, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
    store.get(key, ReadMode::Blocking).map(value_of)
}

/// All keys of a snapshot with their values, sorted.
pub fn fold(snapshot: &mut dyn Snapshot, prefix: &[u8], count_max: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    loop {
        let batch = snapshot.next(&Scope::prefix(prefix), Detail::Keys, count_max).unwrap();
        assert!(batch.len() <= count_max);
        if batch.is_empty() {
            break;
        }
        for entry in batch {
            let value = value_of(snapshot.read(&entry.key).unwrap()).expect("a key of the snapshot");
            assert_eq!(entry.digest, digest_of(&value));
            found.push((entry.key.to_vec(), value));
        }
    }
    found.sort();
    found
}

/// A seeded random generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
