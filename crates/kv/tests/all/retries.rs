//! Repeated writes that find their version already stored: `asis`, `write_once` and imports. They
//! are acknowledged as durable only when that version is durable, whichever write appended it.

use crate::support::stores::{copy_dir, scratch_dir};
use crate::support::{Node, map};
use bytes::Bytes;
use ombak_kv::{DeleteMode, GetOptions, GetReply, GetRequest, ImportOutcome, Kv, KvConfig, PutOptions, PutRequest};
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::{
    BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, NoTerms, SyncStrategy,
};
use ombak_types::props::SyncOnWrite;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Bucket, Error, Object, Sibling, VectorClock};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;

type Stores = fn(&Arc<FaultyFs>, &Path) -> Arc<dyn BackendFactory>;

fn journal() -> JournalConfig {
    JournalConfig { sync: SyncStrategy::None, ..JournalConfig::default() }
}

fn bitcask(fs: &Arc<FaultyFs>, dir: &Path) -> Arc<dyn BackendFactory> {
    Arc::new(BitcaskFactory::new(fs.clone(), dir.join("bitcask"), journal()).unwrap())
}

fn leveled(fs: &Arc<FaultyFs>, dir: &Path) -> Arc<dyn BackendFactory> {
    let (root, ledger) = (dir.join("leveled"), LedgerConfig::default());
    Arc::new(LeveledFactory::new(fs.clone(), root, journal(), ledger, Arc::new(NoTerms)).unwrap())
}

fn leveldb(fs: &Arc<FaultyFs>, dir: &Path) -> Arc<dyn BackendFactory> {
    let (root, ledger) = (dir.join("leveldb"), LedgerConfig::default());
    Arc::new(LeveldbFactory::new(fs.clone(), root, journal(), ledger, Arc::new(NoTerms)).unwrap())
}

/// The kind of a write that carries its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    AsIs,
    WriteOnce,
}

fn bucket(how: How) -> Bucket {
    match how {
        How::AsIs => Bucket::untyped("b"),
        How::WriteOnce => Bucket { bucket_type: "once".into(), name: "b".into() },
    }
}

/// Returns the same object at each call.
fn object(how: How) -> Object {
    let mut sibling = Sibling::new("value");
    (sibling.meta.vtag, sibling.meta.last_modified) = (Some(Bytes::from_static(b"vtag")), Some(UnixMicros(1)));
    let mut clock = VectorClock::new();
    if how == How::AsIs {
        clock.increment(&Actor::new(b"elsewhere"), UnixMicros(1));
    }
    Object { clock, siblings: vec![sibling] }
}

/// A node whose stores were all written to and synced, so that the next sync is that of a data
/// file.
async fn open(stores: Stores, fs: &Arc<FaultyFs>, dir: &Path) -> Node {
    let mut config = KvConfig::new("ombak@127.0.0.1", dir, stores(fs, dir));
    (config.fs, config.ring_size, config.delete_mode) = (fs.clone(), 8, DeleteMode::Keep);
    // Only the test causes syncs.
    config.maintain_interval = std::time::Duration::from_secs(3600);
    let node = Node::over(Kv::open(config).unwrap());
    if node.kv.buckets().create_type(b"once", &map(json!({"write_once": true}))).is_ok() {
        node.kv.buckets().activate_type(b"once").unwrap();
    }
    for n in 0..64 {
        let mut request = node.put_request(&format!("other {n}"), "v", VectorClock::new());
        request.options.sync_on_write = Some(SyncOnWrite::One);
        node.kv.put(request).await.unwrap();
    }
    assert!(node.kv.vnode_status().iter().all(|(_, status)| status.keys > 0));
    node
}

async fn put(node: &Node, how: How, is_synced: bool) -> Result<(), Error> {
    let sync_on_write = is_synced.then_some(SyncOnWrite::One);
    let options = PutOptions { asis: how == How::AsIs, sync_on_write, ..PutOptions::default() };
    let request = PutRequest { bucket: bucket(how), key: Some("k".into()), object: object(how), options };
    node.kv.put(request).await.map(drop)
}

async fn is_there(node: &Node, how: How) -> bool {
    let request = GetRequest { bucket: bucket(how), key: "k".into(), options: GetOptions::default() };
    matches!(node.kv.get(request).await.unwrap(), GetReply::Found(_))
}

async fn a_retry_fails_after_a_failed_sync(stores: Stores, how: How) {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let node = open(stores, &fs, dir.path()).await;
    fs.fail_at(Call::SyncData, 1);
    let refused = put(&node, how, true).await;
    assert!(refused.is_err(), "{how:?}: the sync fails");
    for is_synced in [true, false] {
        let retried = put(&node, how, is_synced).await;
        assert!(retried.is_err(), "{how:?}, synced: {is_synced}");
    }
    assert!(is_there(&node, how).await, "reads go on");
}

#[tokio::test]
async fn a_retry_after_a_failed_sync_is_not_acknowledged() {
    for (_, stores) in ALL_STORES {
        for how in [How::AsIs, How::WriteOnce] {
            a_retry_fails_after_a_failed_sync(stores, how).await;
        }
    }
}

/// Cuts the power while a node runs. `loss` says what happens to writes that were not synced. The
/// ledgers lie on the real file system; they keep the state of this moment.
fn cut_power(node: Node, fs: &FaultyFs, dir: &Path, loss: Loss) -> Arc<FaultyFs> {
    let ledgers = scratch_dir();
    copy_dir(dir, ledgers.path());
    let fs = fs.restart(loss);
    // Nothing that the node does when it is dropped reaches the disk any more.
    drop(node);
    fs::remove_dir_all(dir).unwrap();
    copy_dir(ledgers.path(), dir);
    fs
}

const ALL_STORES: [(&str, Stores); 3] = [("bitcask", bitcask), ("leveled", leveled), ("leveldb", leveldb)];

/// The store restarts after the failed sync; a write that is acknowledged then survives a power
/// loss.
#[tokio::test]
async fn a_retry_after_a_start_is_durable() {
    for (backend, stores) in ALL_STORES {
        for loss in [Loss::Everything, Loss::Nothing] {
            for how in [How::AsIs, How::WriteOnce] {
                let (fs, dir) = (FaultyFs::new(1), scratch_dir());
                let node = open(stores, &fs, dir.path()).await;
                fs.fail_at(Call::SyncData, 1);
                assert!(put(&node, how, true).await.is_err());
                let fs = cut_power(node, &fs, dir.path(), loss);
                let node = open(stores, &fs, dir.path()).await;
                assert_eq!(put(&node, how, true).await, Ok(()), "{backend}, {loss:?}, {how:?}");
                let fs = cut_power(node, &fs, dir.path(), Loss::Everything);
                let node = open(stores, &fs, dir.path()).await;
                assert!(is_there(&node, how).await, "{backend}, {loss:?}, {how:?}: it was acknowledged as synced");
            }
        }
    }
}

/// The first write asks for no sync, the second one does.
#[tokio::test]
async fn a_retry_waits_for_the_sync_that_the_first_write_did_not_ask_for() {
    for (backend, stores) in ALL_STORES {
        for how in [How::AsIs, How::WriteOnce] {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let node = open(stores, &fs, dir.path()).await;
            let syncs = fs.calls_of(Call::SyncData);
            assert_eq!(put(&node, how, false).await, Ok(()));
            assert_eq!(fs.calls_of(Call::SyncData), syncs, "{backend}, {how:?}");
            assert_eq!(put(&node, how, true).await, Ok(()));
            let fs = cut_power(node, &fs, dir.path(), Loss::Everything);
            let node = open(stores, &fs, dir.path()).await;
            assert!(is_there(&node, how).await, "{backend}, {how:?}: it was acknowledged as synced");
        }
    }
}

#[tokio::test]
async fn an_import_that_is_repeated_syncs_what_was_known() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let node = open(bitcask, &fs, dir.path()).await;
    let how = How::AsIs;
    // The first import ends without a sync.
    assert_eq!(node.kv.importer().import(&bucket(how), b"k", object(how)), Ok(ImportOutcome::New));
    let mut again = node.kv.importer();
    assert_eq!(again.import(&bucket(how), b"k", object(how)), Ok(ImportOutcome::Known));
    again.sync().unwrap();
    drop(again);
    let fs = cut_power(node, &fs, dir.path(), Loss::Everything);
    let node = open(bitcask, &fs, dir.path()).await;
    assert!(is_there(&node, how).await);
}
