//! Objects with very many index entries: on every backend, a write changes exactly the entries that
//! differ.

use crate::common::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, HeadTerms, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory,
    MemoryConfig, MemoryFactory, TermRange, Write,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const BUCKET: &[u8] = b"\x02\0\x01b";
const FIELD: &[u8] = b"f_bin";
const ENTRIES: u32 = 40_000;

/// Each line of a head is a term of one field.
struct LineTerms;

impl HeadTerms for LineTerms {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        head.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(|term| visit(FIELD, term));
    }
}

fn factories(dir: &Path) -> Vec<Box<dyn BackendFactory>> {
    let (config, ledger) = (JournalConfig::default(), LedgerConfig::default());
    let terms = || Arc::new(LineTerms);
    let bitcask = BitcaskFactory::with_terms(FaultyFs::new(1), dir.join("bitcask"), config, &ledger, terms());
    let leveled = LeveledFactory::new(FaultyFs::new(2), dir.join("leveled"), config, ledger, terms());
    let leveldb = LeveldbFactory::new(FaultyFs::new(3), dir.join("leveldb"), config, ledger, terms());
    vec![
        Box::new(MemoryFactory::with_terms(MemoryConfig::default(), terms())),
        Box::new(bitcask.unwrap()),
        Box::new(leveled.unwrap()),
        Box::new(leveldb.unwrap()),
    ]
}

fn term(number: u32) -> String {
    format!("{number:06}")
}

fn put_with_terms(store: &dyn Backend, numbers: Range<u32>) {
    // In no order and some of them twice, because clients may send them so.
    let mut terms: Vec<u32> = numbers.clone().rev().chain(numbers.take(10)).collect();
    let middle = terms.len() / 3;
    terms.rotate_left(middle);
    let head: Vec<u8> = terms.iter().flat_map(|number| (term(*number) + "\n").into_bytes()).collect();
    let key = [BUCKET, b"key"].concat();
    let tstamp_secs = NOW_SECS as u32;
    let has_terms = !head.is_empty();
    let write = Write { key: &key, head: &head, body: &[], digest: 1, tstamp_secs, expires_secs: 0, has_terms };
    store.put(&write).unwrap();
}

fn terms_of(store: &dyn Backend) -> Vec<String> {
    let range = TermRange { bucket: BUCKET, field: FIELD, from: b"", to: b"z", after: None };
    let found = store.ordered_snapshot(BUCKET).unwrap().terms_in_order(&range, usize::MAX).unwrap();
    found.into_iter().map(|entry| String::from_utf8(entry.term.to_vec()).unwrap()).collect()
}

#[test]
fn tens_of_thousands_of_index_entries_are_replaced_by_others() {
    let dir = scratch_dir();
    for factory in factories(dir.path()) {
        let store = factory.open(1).unwrap();
        // First other entries, then a half of them again, then fewer, none, and all of the first
        // ones.
        let steps =
            [0..ENTRIES, ENTRIES..2 * ENTRIES, ENTRIES / 2..ENTRIES * 3 / 2, ENTRIES..ENTRIES + 100, 0..0, 0..ENTRIES];
        for numbers in steps {
            put_with_terms(&*store, numbers.clone());
            let found = terms_of(&*store);
            assert!(found.iter().cloned().eq(numbers.clone().map(term)), "{}: {numbers:?}", factory.name());
        }
        store.delete(&[BUCKET, b"key"].concat()).unwrap();
        assert!(terms_of(&*store).is_empty(), "{}", factory.name());
    }
}
