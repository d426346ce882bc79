//! Opens a bitcask store whose files were damaged while it was closed. It must open or give an
//! error. For each key it must then return the value that was written, an error, or nothing, and
//! never anything else.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::fs::{FileSystem, OpenMode};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, Detail, JournalConfig, ReadMode, Scope, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROOT: &str = "/data";
const KEYS: u8 = 8;
const SEED: u64 = 1;

/// Damage to one of the files: bytes are written at an offset, or the file is truncated there.
#[derive(Debug, Arbitrary)]
struct Damage {
    file: u8,
    offset: u16,
    cut: bool,
    bytes: Vec<u8>,
}

fn value(key: u8) -> Vec<u8> {
    vec![key; 16 + usize::from(key) * 40]
}

fn open(fs: &Arc<FaultyFs>) -> Option<Arc<dyn Backend>> {
    let factory = BitcaskFactory::new(Arc::clone(fs) as Arc<dyn FileSystem>, ROOT, JournalConfig::default()).ok()?;
    factory.open(0).ok()
}

fn fill(fs: &Arc<FaultyFs>) {
    let store = open(fs).expect("an empty store opens");
    for key in 0..KEYS {
        let write = Write {
            key: &[key],
            head: &[key, key],
            body: &[&value(key)],
            digest: u64::from(key),
            tstamp_secs: 1,
            expires_secs: 0,
            has_terms: false,
        };
        store.put(&write).expect("a store takes a write");
    }
    store.close().expect("a store closes");
}

fn paths(fs: &Arc<FaultyFs>) -> Vec<PathBuf> {
    let dir = Path::new(ROOT).join("0");
    let mut names = fs.list(&dir).expect("the directory is listed");
    names.sort();
    names.into_iter().map(|name| dir.join(name)).collect()
}

fn damage(fs: &Arc<FaultyFs>, what: &[Damage]) {
    let paths = paths(fs);
    for one in what {
        let Some(path) = paths.get(usize::from(one.file) % paths.len().max(1)) else { return };
        let file = fs.open(path, OpenMode::Write).expect("a file opens");
        let offset = u64::from(one.offset);
        if one.cut {
            file.truncate(offset.min(file.length().expect("a file has a length"))).expect("a file is cut");
        } else {
            file.write_at(&one.bytes, offset).expect("a file is written");
        }
    }
}

fuzz_target!(|what: Vec<Damage>| {
    let fs = FaultyFs::new(SEED);
    fill(&fs);
    damage(&fs, &what);
    let Some(store) = open(&fs) else { return };
    for key in 0..KEYS {
        if let Ok(Some(found)) = store.get(&[key], ReadMode::Blocking) {
            assert_eq!(found.head, [key, key].as_slice());
            assert_eq!(found.body.expect("a body was asked for"), value(key));
        }
    }
    if let Ok(mut snapshot) = store.snapshot() {
        while snapshot.next(&Scope::prefix(&[]), Detail::Keys, 100).is_ok_and(|keys| !keys.is_empty()) {}
    }
    let _ = store.close();
});
