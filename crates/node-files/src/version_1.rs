//! The files of version 1, as nodes of that version have written them.

use crate::directory::{IDENTITY_FILE, NodeDirectory, read_identity};
use crate::identity::{Identity, OwnMetadata};
use crate::milestones::{Milestone, Milestones};
use crate::saved_json;
use crate::seen_milestones::SEEN_FILE;
use ombak_fixtures::check_file;
use ombak_storage::fs::RealFs;
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn an_identity_has_the_bytes_of_version_1() {
    let dir = tempfile::tempdir().unwrap();
    let mut milestones = Milestones::default();
    for token in [u64::MAX, 7, 0x0102_0304_0506_0708] {
        milestones.add(token, 300);
    }
    milestones.note_recorded(Milestone { number: 301, token: 7 });
    let identity = Identity {
        format: 3,
        node_id: NodeId::new(0x0102_0304_0506_0708),
        ring_lineage: u64::MAX,
        ring_size: 64,
        boot: 300,
        milestones,
        metadata: OwnMetadata::Member,
        is_restored: true,
        was_removed: false,
    };
    let written = saved_json::to_text(&identity).unwrap();
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 1, IDENTITY_FILE, &written);
    std::fs::write(dir.path().join(IDENTITY_FILE), frozen).unwrap();
    assert_eq!(read_identity(&RealFs, dir.path()).unwrap(), Some(identity));
}

#[test]
fn what_was_seen_of_others_has_the_bytes_of_version_1() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SEEN_FILE);
    let seen = BTreeMap::from([
        (NodeId::new(7), Milestone { number: 300, token: u64::MAX }),
        (NodeId::new(u64::MAX), Milestone { number: 1, token: 0 }),
    ]);
    let files = NodeDirectory::open(Arc::new(RealFs), dir.path()).unwrap();
    files.save_seen_milestones(&seen).unwrap();
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 1, SEEN_FILE, &std::fs::read(&path).unwrap());
    std::fs::write(path, frozen).unwrap();
    assert_eq!(files.read_seen_milestones().unwrap(), seen);
}
