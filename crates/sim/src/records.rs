//! The records in the data files of simulated disks, as far as faults need to know them.
//!
//! It reads the fixed part of a record by itself (docs/architecture/storage.md draws it), so that a
//! fault hits a record of its choice. It knows the keys of a run, and finds records of no others.

use crate::oracle::Key;
use std::collections::BTreeMap;

/// The fixed part of a record, and where its fields lie.
const FIXED_BYTES: usize = 48;
const KIND_AT: usize = 8;
const FLAGS_AT: usize = 9;
const KEY_LENGTH_AT: usize = 12;
const HEAD_LENGTH_AT: usize = 16;
const SYNCED_TO_AT: usize = 28;
const SEQ_AT: usize = 32;
/// The kind of a record that says that a key was removed.
const REMOVAL: u8 = 2;
/// The flag of a record with a time of expiry, which lies between the fixed part and the key.
const EXPIRES: u8 = 1;
const EXPIRES_BYTES: usize = 4;
/// The bit of the last byte of a key, which is a digit, that makes the key one of no run.
const BIT_OF_OTHER_KEY: u64 = 6;

/// A record of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundRecord {
    /// The key.
    pub(crate) key: Key,
    /// Its place in the append order of its store.
    pub(crate) seq: u64,
    /// Whether it says that the store has removed the key.
    pub(crate) is_removal: bool,
    /// Where the bytes of the key begin.
    pub(crate) key_at: usize,
    /// Where the key ends: head and body follow.
    pub(crate) key_end: usize,
    /// The length of the head.
    head_length: u32,
    /// How many bytes of the file were known to be on the disk when it was written.
    synced_to: u64,
    /// Where the record begins.
    at: usize,
}

/// The records of keys of a run in the content of a data file, in their order.
pub(crate) fn records(content: &[u8], keys: &BTreeMap<Vec<u8>, Key>) -> Vec<FoundRecord> {
    let longest = keys.keys().map(Vec::len).max().unwrap_or_default() as u32;
    let (mut found, mut at) = (Vec::new(), 0);
    while at + FIXED_BYTES <= content.len() {
        let record = Some(at).filter(|_| matches!(content[at + KIND_AT], 1 | REMOVAL));
        match record.and_then(|at| record_at(content, at, longest, keys)) {
            Some(record) => {
                at = record.key_end;
                found.push(record);
            }
            None => at += 1,
        }
    }
    found
}

fn record_at(content: &[u8], at: usize, longest: u32, keys: &BTreeMap<Vec<u8>, Key>) -> Option<FoundRecord> {
    let length = number(content, at + KEY_LENGTH_AT).filter(|length| (1..=longest).contains(length))?;
    let has_expiry = content.get(at + FLAGS_AT)? & EXPIRES != 0;
    let key_at = at + FIXED_BYTES + if has_expiry { EXPIRES_BYTES } else { 0 };
    let key_end = key_at + length as usize;
    let key = *keys.get(content.get(key_at..key_end)?)?;
    let seq = u64::from_le_bytes(content.get(at + SEQ_AT..at + SEQ_AT + 8)?.try_into().ok()?);
    let synced_to = u64::from(number(content, at + SYNCED_TO_AT)?);
    let is_removal = content.get(at + KIND_AT) == Some(&REMOVAL);
    let head_length = number(content, at + HEAD_LENGTH_AT)?;
    Some(FoundRecord { key, seq, is_removal, key_at, key_end, head_length, synced_to, at })
}

fn number(content: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(content.get(at..at + 4)?.try_into().ok()?))
}

/// Whether a later record of a file says that a byte of it was on the disk. A start never takes
/// damage to that for a write that was interrupted.
pub(crate) fn is_cold(records: &[FoundRecord], byte: usize) -> bool {
    records.iter().any(|record| record.at > byte && record.synced_to > byte as u64)
}

/// The bit of a file to flip so that a record is one of another key, which is none of the run.
pub(crate) fn bit_of_key(record: &FoundRecord) -> u64 {
    (record.key_end as u64 - 1) * 8 + BIT_OF_OTHER_KEY
}

/// The bits to flip besides, so that the checksum of the record is right: a fault of memory or of
/// code writes such a record.
///
/// Its first checksum covers everything before the body. A CRC is linear, so the change of the
/// checksum follows from the change of the bytes alone.
pub(crate) fn bits_of_checksum(record: &FoundRecord) -> impl Iterator<Item = u64> {
    let zeros = vec![0; 1 + record.head_length as usize];
    let mut change = zeros.clone();
    change[0] = 1 << BIT_OF_OTHER_KEY;
    let difference = crc32(&change) ^ crc32(&zeros);
    let begin = record.at as u64 * 8;
    (0..32).filter(move |bit| difference & (1 << bit) != 0).map(move |bit| begin + bit)
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket_kinds::BucketKind;
    use crate::disks::STORES_DIR;
    use crate::oracle::storage_key_of;
    use ombak_storage::fs::FileSystem;
    use ombak_storage::fs::sim::{FaultyFs, Loss};
    use ombak_storage::{BackendFactory, BitcaskFactory, JournalConfig, ReadMode, Write};
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn records_of_a_store_are_found() {
        let keys = [0, 1].map(|number| Key { kind: BucketKind::ALL[0], number });
        let known: BTreeMap<Vec<u8>, Key> = keys.iter().map(|key| (storage_key_of(*key), *key)).collect();
        let disk = FaultyFs::new(1);
        let factory = BitcaskFactory::new(disk.clone(), STORES_DIR, JournalConfig::default()).unwrap();
        let store = factory.open(0).unwrap();
        for key in keys {
            let key = storage_key_of(key);
            let (head, body, digest) = (b"head".as_slice(), [b"body".as_slice()], 7);
            let (tstamp_secs, expires_secs, has_terms) = (1, 0, false);
            let write = Write { key: &key, head, body: &body, digest, tstamp_secs, expires_secs, has_terms };
            store.put(&write).unwrap();
            store.sync(store.last_seq()).unwrap();
        }
        store.delete(&storage_key_of(keys[0])).unwrap();
        let dir = Path::new(STORES_DIR).join("0");
        let file = disk.list(&dir).unwrap().into_iter().find(|name| name.ends_with(".data")).unwrap();
        let content = disk.content(&dir.join(file)).unwrap();
        let found = records(&content, &known);
        let shown: Vec<_> = found.iter().map(|record| (record.key, record.is_removal)).collect();
        assert_eq!(shown, [(keys[0], false), (keys[1], false), (keys[0], true)]);
        assert!(found.is_sorted_by_key(|record| record.seq));
        assert_eq!(&content[found[1].key_at..found[1].key_end], storage_key_of(keys[1]));
        assert!(is_cold(&found, found[0].key_at), "a later record says that it was synced");
        assert!(!is_cold(&found, found[2].key_at), "nothing comes after it");
    }

    /// The store takes such a record for one of the other key, and the key shows its older version.
    #[test]
    fn a_renamed_record_is_no_damage() {
        let [key, other] = [0, 1].map(|number| Key { kind: BucketKind::ALL[0], number });
        let known = [key, other].map(|key| (storage_key_of(key), key)).into();
        let disk = FaultyFs::new(1);
        let open = |disk: &Arc<FaultyFs>| {
            let factory = BitcaskFactory::new(disk.clone(), STORES_DIR, JournalConfig::default()).unwrap();
            factory.open(0).unwrap()
        };
        let store = open(&disk);
        for (key, head) in [(other, b"other".as_slice()), (key, b"first"), (key, b"second")] {
            let (key, body, digest) = (storage_key_of(key), [b"body".as_slice()], 7);
            let (tstamp_secs, expires_secs, has_terms) = (1, 0, false);
            let write = Write { key: &key, head, body: &body, digest, tstamp_secs, expires_secs, has_terms };
            store.put(&write).unwrap();
        }
        store.delete(&storage_key_of(key)).unwrap();
        store.sync(store.last_seq()).unwrap();
        let disk = disk.restart(Loss::Nothing);
        drop(store);
        let dir = Path::new(STORES_DIR).join("0");
        let names = disk.list(&dir).unwrap();
        let file = names.iter().find(|name| name.ends_with(".data")).unwrap_or_else(|| panic!("{names:?}"));
        let path = dir.join(file);
        let found: Vec<FoundRecord> = records(&disk.content(&path).unwrap(), &known);
        let of_key: Vec<&FoundRecord> = found.iter().filter(|record| record.key == key).collect();
        for record in &of_key[1..] {
            std::iter::once(bit_of_key(record)).chain(bits_of_checksum(record)).for_each(|bit| {
                disk.flip_bit(&path, bit).unwrap();
            });
        }
        let store = open(&disk);
        let stored = store.get_with_expired(&storage_key_of(key), ReadMode::Blocking).unwrap().unwrap();
        assert_eq!((&stored.head[..], stored.seq), (b"first".as_slice(), of_key[0].seq));
    }
}
