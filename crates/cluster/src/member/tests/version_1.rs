//! The questions of members of version 1, and their answers.

use crate::member::questions::question::{Answer, Place, Question, decode, encode};
use crate::member::questions::transfers::{
    ActiveTransfer, FillingClass, MemberTransfers, Missed, PartitionHints, TransferChange,
};
use crate::member::questions::unsettled_counts::UnsettledCounts;
use ombak_fixtures::{FrozenMessages, variants_in};
use ombak_metadata::state::{BucketName, RaftId, TypeName};
use ombak_node_files::Milestone;
use ombak_ring::RingVersion;
use ombak_types::NodeId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;

const NODE: NodeId = NodeId::new(0x0102_0304_0506_0708);
const MILESTONE: Milestone = Milestone { number: 300, token: 0x0102_0304_0506_0708 };

fn questions() -> Vec<(&'static str, Question)> {
    let change = TransferChange {
        outbound: Some(true),
        inbound: Some(false),
        transfer_limit: Some(4),
        bytes_per_second: Some(300),
    };
    let bucket = BucketName { r#type: "a type".into(), name: "100% \u{e9}\u{1}".into() };
    let objects = |r#in| Question::Objects { r#in, closing: Some(300), lineage: Some(7) };
    vec![
        ("ring", Question::Ring),
        ("cluster", Question::Cluster),
        ("start", Question::Start),
        ("goes_on", Question::GoesOn { milestone: MILESTONE }),
        ("is_older", Question::IsOlder { why: "a reason".into() }),
        ("is_member", Question::IsMember { node: NODE }),
        ("followed", Question::Followed { at_least: 300, lineage: Some(7) }),
        ("followed/no_lineage", Question::Followed { at_least: 300, lineage: None }),
        ("settled", Question::Settled),
        ("transfers", Question::Transfers),
        ("change_transfers", Question::ChangeTransfers { change }),
        ("change_transfers/nothing", Question::ChangeTransfers { change: TransferChange::default() }),
        ("retry_transfers", Question::RetryTransfers),
        ("objects/everywhere", objects(Place::Everywhere)),
        ("objects/type", objects(Place::Type(TypeName("a type".into())))),
        ("objects/bucket", objects(Place::Bucket(bucket.clone()))),
        ("objects/open", Question::Objects { r#in: Place::Bucket(bucket), closing: None, lineage: None }),
    ]
}

fn transfers() -> MemberTransfers {
    let missed = Missed { partition: 300, n_val: 3, node: NODE };
    MemberTransfers {
        outbound: true,
        inbound: false,
        transfer_limit: 4,
        bytes_per_second: 300,
        hinted_partitions: 5,
        hinted_objects: 301,
        hinted_bytes: 302,
        hints: vec![PartitionHints { partition: 300, objects: 301, bytes: 302 }],
        active: vec![ActiveTransfer {
            kind: "hinted".into(),
            partition: 300,
            n_val: 3,
            receiver: NODE,
            objects_compared: 301,
            bytes_sent: 302,
            since_secs: 1_700_000_000,
            objects_total: None,
            running_ms: None,
        }],
        owed_marks: 6,
        owed: vec![missed.clone()],
        ordered_transfers: 7,
        ordered: vec![missed],
        filling_classes: 8,
        filling: vec![FillingClass { partition: 300, n_val: 3, reason: "new_store".into() }],
    }
}

fn answers() -> Vec<(&'static str, Answer)> {
    let counts = UnsettledCounts {
        partitions_with_hints: 301,
        owed_marks: 302,
        filling_classes: 303,
        transfers: 304,
        unreadable_keys: 305,
        versions_lacked: 0,
        versions_to_reap: 306,
        looks_for_tombstones: true,
        key_jobs: 0,
        exchange_round: None,
    };
    let cluster = Answer::Cluster {
        name: "a@h".into(),
        node: NODE,
        ring_size: 64,
        not_empty: vec!["b@h".into()],
        types: vec![TypeName("a type".into())],
    };
    let known = Answer::Start {
        recorded: Some(MILESTONE),
        boot: Some(300),
        seen: Some(MILESTONE),
        log: Some(RaftId::new(0x0102_0304_0506_0708)),
        seen_progress: Some((7, 300)),
    };
    let unknown = Answer::Start { recorded: None, boot: None, seen: None, log: None, seen_progress: None };
    vec![
        ("ring", Answer::Ring { version: RingVersion { lineage: 7, number: 300 } }),
        ("cluster", cluster),
        ("is_member", Answer::IsMember { is_member: true, index: 300, lineage: Some(7) }),
        ("is_member/no_lineage", Answer::IsMember { is_member: false, index: 300, lineage: None }),
        ("followed", Answer::Followed { index: 300 }),
        ("start", known),
        ("start/unknown", unknown),
        ("noted", Answer::Noted),
        ("settled", Answer::Settled(counts)),
        ("settled/nothing", Answer::Settled(UnsettledCounts::default())),
        ("transfers", Answer::Transfers(Box::new(transfers()))),
        ("transfers/nothing", Answer::Transfers(Box::default())),
        ("objects", Answer::Objects { found: Some(300) }),
        ("objects/none", Answer::Objects { found: None }),
        ("refused", Answer::Refused { why: "a reason".into() }),
    ]
}

fn check<T: Debug + Serialize + DeserializeOwned>(file: &str, messages: &[(&str, T)]) {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 1, file);
    for (name, message) in messages {
        frozen.check(name, message, |m| encode(m).to_vec(), decode);
    }
    frozen.end();
    let later = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, file);
    let variant = |name: &str| name.split('/').next().unwrap().to_owned();
    let names = messages.iter().map(|(name, _)| variant(name));
    let names: BTreeSet<String> = names.chain(later.names().map(variant)).collect();
    let error = decode::<T>(b"\x01{\"no such variant\": 0}").unwrap_err();
    assert_eq!(names, variants_in(&error).into_iter().collect(), "{file}: a variant is not frozen");
}

#[test]
fn questions_and_answers_have_the_bytes_of_version_1() {
    check("member-questions", &questions());
    check("member-answers", &answers());
}
