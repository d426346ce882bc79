//! The messages, the entries and the small files of version 1.

use super::super::machine::Description;
use super::super::types::{Entry, EntryId, RaftNode, SnapshotMeta, StoredMembership, Vote};
use super::super::wire::{self, Request, Response};
use crate::log::{LogError, SavedSnapshot, SnapshotFile};
use crate::log_dirs::LogDirs;
use crate::state::{Command, RaftId, Refusal};
use bytes::Bytes;
use ombak_fixtures::{FrozenMessages, check_file, variants_in};
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use ombak_types::NodeId;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};
use openraft::{CommittedLeaderId, EntryPayload, LogId, Membership};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/data";
const LOG: RaftId = RaftId::new(0x0102_0304_0506_0708);
const OTHER_LOG: RaftId = RaftId::new(300);

fn entry_id(index: u64) -> EntryId {
    LogId::new(CommittedLeaderId::new(7, LOG), index)
}

fn vote() -> Vote {
    Vote::new_committed(7, LOG)
}

fn membership() -> Membership<RaftId, RaftNode> {
    let node = |number| RaftNode { node: Some(NodeId::new(number)) };
    let nodes: BTreeMap<RaftId, RaftNode> = [(LOG, node(1)), (OTHER_LOG, node(2)), (RaftId::new(301), node(3))].into();
    let voters = |voters: &[RaftId]| voters.iter().copied().collect::<BTreeSet<RaftId>>();
    Membership::new(vec![voters(&[LOG]), voters(&[LOG, OTHER_LOG])], nodes)
}

fn meta() -> SnapshotMeta {
    let last_membership = StoredMembership::new(Some(entry_id(298)), membership());
    SnapshotMeta { last_log_id: Some(entry_id(299)), last_membership, snapshot_id: "a snapshot".into() }
}

fn entries() -> Vec<(&'static str, Entry)> {
    let entry = |index, payload| Entry { log_id: entry_id(index), payload };
    vec![
        ("blank", entry(300, EntryPayload::Blank)),
        ("command", entry(301, EntryPayload::Normal(Command::CloseWrites))),
        ("membership", entry(302, EntryPayload::Membership(membership()))),
    ]
}

fn requests() -> Vec<(&'static str, Request)> {
    let rpc = AppendEntriesRequest {
        vote: vote(),
        prev_log_id: Some(entry_id(299)),
        entries: entries().into_iter().map(|(_, entry)| entry).collect(),
        leader_commit: Some(entry_id(298)),
    };
    let heartbeat = AppendEntriesRequest { vote: vote(), prev_log_id: None, entries: Vec::new(), leader_commit: None };
    let ask = |last| VoteRequest::new(Vote::new(7, LOG), last);
    let (at, total) = (1 << 20, (1 << 20) + 7);
    vec![
        ("append", Request::Append { to: OTHER_LOG, rpc }),
        ("append/heartbeat", Request::Append { to: OTHER_LOG, rpc: heartbeat }),
        ("vote", Request::Vote { to: OTHER_LOG, rpc: ask(Some(entry_id(299))) }),
        ("vote/empty", Request::Vote { to: OTHER_LOG, rpc: ask(None) }),
        ("snapshot", Request::Snapshot { to: OTHER_LOG, vote: vote(), meta: meta(), offset: at, total }),
        ("propose", Request::Propose { command: Command::CloseWrites }),
        ("progress", Request::Progress { at_least: 300, wait_ms: 4000 }),
    ]
}

fn responses() -> Vec<(&'static str, Response)> {
    let granted = VoteResponse { vote: vote(), vote_granted: true, last_log_id: Some(entry_id(299)) };
    let refusal = Some(Refusal::NoSuchMember(NodeId::new(1)));
    vec![
        ("append/success", Response::Append(AppendEntriesResponse::Success)),
        ("append/partial", Response::Append(AppendEntriesResponse::PartialSuccess(Some(entry_id(299))))),
        ("append/conflict", Response::Append(AppendEntriesResponse::Conflict)),
        ("append/higher_vote", Response::Append(AppendEntriesResponse::HigherVote(vote()))),
        ("vote", Response::Vote(granted)),
        ("snapshot", Response::Snapshot { vote: vote() }),
        ("proposed", Response::Proposed { index: 300, refusal: None }),
        ("proposed/refused", Response::Proposed { index: 300, refusal }),
        ("not_leader", Response::NotLeader { leader: Some(NodeId::new(1)) }),
        ("not_leader/unknown", Response::NotLeader { leader: None }),
        ("progress", Response::Progress { applied: 300 }),
        ("refused", Response::Refused { why: "a reason".into() }),
    ]
}

fn check<T: Debug + Serialize + DeserializeOwned>(file: &str, messages: &[(&str, T)], raw: &'static [u8]) {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 1, file);
    let encode = |message: &T| wire::encode(message, raw).unwrap().to_vec();
    let decode = |bytes: &[u8]| {
        let (message, rest) = wire::decode(&Bytes::copy_from_slice(bytes))?;
        assert_eq!(rest, raw);
        Ok::<T, wire::BadMessage>(message)
    };
    for (name, message) in messages {
        frozen.check(name, message, encode, decode);
    }
    frozen.end();
    let later = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, file);
    let variant = |name: &str| name.split('/').next().unwrap().to_owned();
    let names = messages.iter().map(|(name, _)| variant(name));
    let names: BTreeSet<String> = names.chain(later.names().map(variant)).collect();
    let error = serde_json::from_str::<Variant<T>>(r#"{"no such variant": 0}"#).map(drop).unwrap_err().to_string();
    assert_eq!(names, variants_in(&error).into_iter().collect(), "{file}: a variant is not frozen");
}

/// A type of messages, whose decoder is asked which variants it knows.
#[derive(serde::Deserialize)]
#[serde(transparent, bound = "T: DeserializeOwned")]
struct Variant<T>(#[allow(dead_code, reason = "only its decoder counts")] T);

#[test]
fn messages_have_the_bytes_of_version_1() {
    check("raft-requests", &requests(), b"a part");
    check("raft-responses", &responses(), b"");
}

#[test]
fn entries_have_the_bytes_of_version_1() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 1, "entries");
    for (name, entry) in entries() {
        frozen.check(name, &entry, |e| serde_json::to_vec(e).unwrap(), |b| serde_json::from_slice(b));
    }
    for (name, vote) in [("vote", Vote::new(7, LOG)), ("vote/committed", vote())] {
        frozen.check(name, &vote, |v| serde_json::to_vec(v).unwrap(), |b| serde_json::from_slice(b));
    }
    frozen.check("entry_id", &entry_id(300), |id| serde_json::to_vec(id).unwrap(), |b| serde_json::from_slice(b));
    frozen.end();
}

fn new_fs() -> Arc<FaultyFs> {
    let fs = FaultyFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

fn content(fs: &FaultyFs, name: &str) -> Vec<u8> {
    read_file(fs, &Path::new(DIR).join(name), 1 << 20).unwrap()
}

#[test]
fn a_snapshot_has_the_bytes_of_version_1() {
    let description = Bytes::from(serde_json::to_vec(&Description { log: LOG, meta: meta() }).unwrap());
    let saved = SavedSnapshot { description, state: "the state".into() };
    let fs = new_fs();
    let file = SnapshotFile::new(fs.clone(), Path::new(DIR));
    file.save(&saved).unwrap();
    let name = "metadata.snapshot";
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 1, name, &content(&fs, name));
    replace_file(&*fs, &Path::new(DIR).join(name), &frozen).unwrap();
    let read = file.read().unwrap().unwrap();
    let Description { log, meta: read_meta } = serde_json::from_slice(&read.description).unwrap();
    assert_eq!((read, log, read_meta), (saved, LOG, meta()));
}

#[test]
fn the_pointer_to_the_log_in_force_has_the_bytes_of_version_1() -> Result<(), LogError> {
    let fs = new_fs();
    let dirs = LogDirs::new(fs.clone(), Path::new(DIR));
    let begun = dirs.begin()?;
    dirs.put_in_force(&begun)?;
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 1, "current.json", &content(&fs, "current.json"));
    replace_file(&*fs, &dirs.pointer(), &frozen).unwrap();
    assert_eq!(dirs.current()?, Some(begun));
    Ok(())
}
