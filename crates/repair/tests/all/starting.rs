//! The start and the end of the work: questions that come before the answers are there, one state
//! for each engine, and who owns whom.

use crate::support::Node;
use ombak_kv::replica::{
    Compare, Compared, Give, GivePass, ReapingClient, Round, Summarize, TransferClient, VoteRequest,
};
use ombak_kv::{ClassId, Kv, KvConfig, LocalReplica};
use ombak_repair::Repair;
use ombak_ring::RingVersion;
use ombak_storage::fs::RealFs;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::{Error, StoreFailureKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

const CLASS: ClassId = ClassId { partition: 0, n: 3 };
const LIMIT: Duration = Duration::from_secs(30);

fn is_busy<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Storage(failure)) if failure.kind == StoreFailureKind::Busy)
}

async fn compares(replica: &LocalReplica) -> Result<Compared, Error> {
    replica.compare(Compare { class: CLASS, versions: Vec::new(), synced: false }).await
}

#[tokio::test]
async fn a_question_before_the_answers_are_there_is_refused_as_busy() {
    let node = Node::start();
    let replica = node.kv.local_replica();
    let summarize = Summarize { class: CLASS, ranges: 16, synced: false };
    let give = Give {
        class: CLASS,
        to: node.kv.identity().node_id,
        order: 1,
        ranges: 16,
        wanted: Vec::new(),
        pass: GivePass::All,
    };
    let round = Round { partition: 0, n_val: 3, ring: RingVersion::first(1), number: 1 };
    assert!(is_busy(&compares(&replica).await));
    assert!(is_busy(&replica.summarize(summarize).await));
    assert!(is_busy(&replica.give(give).await));
    assert!(is_busy(&replica.vote(VoteRequest { round, versions: Vec::new() }).await));
    Repair::of(&node.kv);
    assert!(compares(&replica).await.is_ok());
    assert_eq!(replica.summarize(summarize).await.unwrap().ranges.len(), 16);
}

#[tokio::test]
async fn all_handles_of_an_engine_share_one_state() {
    let node = Node::start();
    let (first, second) = (Repair::of(&node.kv), Repair::of(&node.kv));
    first.set_transfer_limit(7);
    second.set_handoff(false, true);
    let config = Repair::of(&node.kv).transfer_config();
    assert_eq!((config.concurrency, config.gives, config.takes), (7, false, true));
}

/// The error is that of the directory, or that of the engine.
fn open(dir: &std::path::Path) -> Result<Kv, String> {
    let stores = BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), JournalConfig::default());
    let stores = stores.map_err(|why| why.to_string())?;
    let mut config = KvConfig::new("node", dir, Arc::new(stores));
    config.ring_size = 8;
    Kv::open(config).map_err(|why| why.to_string())
}

/// The directory of a node stays locked as long as its engine lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn neither_the_answers_nor_the_worker_keep_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let kv = open(dir.path()).unwrap();
    Repair::of(&kv).start();
    let closing = kv.clone();
    tokio::task::spawn_blocking(move || closing.close()).await.unwrap();
    assert!(open(dir.path()).is_err(), "the engine still lives");
    drop(kv);
    let deadline = Instant::now() + LIMIT;
    while let Err(why) = open(dir.path()) {
        // The worker may look at it for a moment yet.
        assert!(Instant::now() < deadline, "{why}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
