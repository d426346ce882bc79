//! Told seqs outlive a crash, stay within their bounds, and rise only.

use super::ToldSeqs;
use crate::replica::ToldSeq;
use ombak_storage::fs::RealFs;
use ombak_types::NodeId;
use std::path::Path;
use std::sync::Arc;

const NODE: NodeId = NodeId::new(7);
const OTHER: NodeId = NodeId::new(8);

fn open(dir: &Path) -> ToldSeqs {
    ToldSeqs::open(Arc::new(RealFs), dir).unwrap()
}

#[test]
fn of_one_store_the_highest_seq_stays_and_another_store_takes_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(dir.path());
    told.note(NODE, 3, 5, 10);
    told.note(NODE, 3, 5, 9);
    assert_eq!(told.of(NODE, 3), Some((5, 10)));
    told.note(NODE, 3, 6, 2);
    assert_eq!(told.of(NODE, 3), Some((6, 2)), "the node has another store");
    told.note(NODE, 4, 0, 2);
    assert_eq!(told.of(NODE, 4), None, "a store without an id was never written to");
    told.note(OTHER, 3, 9, 1);
    assert_eq!(told.of_node(NODE), [(3, ToldSeq { store_id: 6, seq: 2 })]);
    assert_eq!(told.of_partition(3, NODE), [(OTHER, ToldSeq { store_id: 9, seq: 1 })]);
    told.retain(|node| node == OTHER);
    assert_eq!((told.of(NODE, 3), told.of(OTHER, 3)), (None, Some((9, 1))));
}

#[test]
fn what_a_third_node_knows_takes_no_other_stores_place() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(dir.path());
    told.note_of_third(NODE, 3, ToldSeq { store_id: 5, seq: 10 });
    told.note_of_third(NODE, 3, ToldSeq { store_id: 5, seq: 11 });
    assert_eq!(told.of(NODE, 3), Some((5, 11)));
    told.note_of_third(NODE, 3, ToldSeq { store_id: 4, seq: 20 });
    assert_eq!(told.of(NODE, 3), Some((5, 11)), "it may be about an earlier store");
    told.note(NODE, 3, 6, 1);
    assert_eq!(told.of(NODE, 3), Some((6, 1)));
}

#[test]
fn what_was_saved_outlives_the_process_and_the_rest_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(dir.path());
    for seq in 1..50 {
        told.note(NODE, 3, 5, seq);
        told.save().unwrap();
    }
    told.note(NODE, 3, 5, 100);
    drop(told);
    let told = open(dir.path());
    assert_eq!(told.of(NODE, 3), Some((5, 49)));
    told.note(OTHER, 3, 5, 1);
    told.save().unwrap();
    assert_eq!(open(dir.path()).of(NODE, 3), Some((5, 49)), "the first save of a run keeps what was there");
    assert_eq!(open(dir.path()).of(OTHER, 3), Some((5, 1)));
}

#[test]
fn the_file_does_not_grow_without_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(dir.path());
    let mut longest = 0;
    for seq in 1..10_000 {
        told.note(NODE, 3, 5, seq);
        told.save().unwrap();
        longest = longest.max(std::fs::metadata(dir.path().join("told-seqs")).unwrap().len());
    }
    assert!(longest < 200_000, "{longest}");
    assert_eq!(open(dir.path()).of(NODE, 3), Some((5, 9_999)));
}

#[test]
fn a_damaged_entry_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(dir.path());
    for partition in 0..4 {
        told.note(NODE, partition, 5, 1);
        told.save().unwrap();
    }
    let path = dir.path().join("told-seqs");
    let whole = std::fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    bytes[8 + 36 + 5] ^= 1;
    bytes.truncate(whole.len() - 3);
    std::fs::write(&path, bytes).unwrap();
    let told = open(dir.path());
    let partitions: Vec<u32> = told.of_node(NODE).into_iter().map(|(partition, _)| partition).collect();
    assert_eq!(partitions, [0, 2]);
    std::fs::write(&path, b"something else").unwrap();
    assert!(ToldSeqs::open(Arc::new(RealFs), dir.path()).is_err());
}

#[test]
fn the_file_has_the_bytes_of_version_2() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(dir.path());
    told.note(NodeId::new(0x0102_0304_0506_0708), 300, 9, 1_000);
    told.save().unwrap();
    let mut expected = b"OMBAKTS1".to_vec();
    expected.extend([8, 7, 6, 5, 4, 3, 2, 1, 0x2c, 1, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0]);
    let bytes = std::fs::read(dir.path().join("told-seqs")).unwrap();
    assert_eq!(bytes[..bytes.len() - 8], expected);
    assert_eq!(bytes.len(), 8 + 36);
}

#[test]
fn a_node_of_an_earlier_version_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let told = open(dir.path());
    told.set_unused();
    told.note(NODE, 3, 5, 10);
    told.save().unwrap();
    assert_eq!(told.of(NODE, 3), None);
    assert!(!dir.path().join("told-seqs").exists());
}
