//! The resources about the node as a whole.

use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::Word;
use crate::memory::MemoryStatus;
use ombak_kv::admin::Health;
use ombak_kv::{Amount, ClassId, FillReason, Kv, NoPart};
use ombak_storage::{LastMerge, LedgerStatus, Status};
use ombak_types::NodeId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

/// The permission to read about the node.
pub(super) const SHOW: Permission = Permission::named("ombak_admin.node");
const STOP: Permission = Permission::named("ombak_admin.stop");

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"node")], SHOW, |call| Box::pin(async move { Ok(describe(call.ctx, call.memory)) })),
    AdminPath::get(&[Word(b"vnodes")], SHOW, |call| Box::pin(vnodes(call.ctx))),
    AdminPath::post(&[Word(b"stop")], STOP, |call| Box::pin(async move { Ok(stop(call.ctx)) })),
];

/// The identity and addresses of a node. They do not change while it runs.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The name of the node, from `nodename`.
    pub name: String,
    /// Ombak's version.
    pub version: &'static str,
    /// The process id.
    pub pid: u32,
    /// The addresses that serve HTTP.
    pub http: Vec<SocketAddr>,
    /// The addresses that serve HTTPS.
    pub https: Vec<SocketAddr>,
    /// The addresses that serve Protocol Buffers.
    pub pb: Vec<SocketAddr>,
    /// The address that serves other nodes, if there is one.
    pub peer: Option<SocketAddr>,
    /// Whether the connections between nodes are encrypted.
    pub encrypts_peers: bool,
    /// The absolute path of the data directory.
    pub data_dir: String,
    /// The backend, as a word for `storage_backend`.
    pub backend: &'static str,
    /// The number of partitions.
    pub ring_size: u32,
    /// The time when the node started.
    pub started: Instant,
}

#[cfg(test)]
impl NodeInfo {
    /// A node for tests that need any, with these addresses for HTTP and for Protocol Buffers.
    pub(crate) fn sample(http: Vec<SocketAddr>, pb: Vec<SocketAddr>) -> Self {
        Self {
            name: "riak@127.0.0.1".into(),
            version: "test",
            pid: 1,
            http,
            https: Vec::new(),
            pb,
            peer: None,
            encrypts_peers: false,
            data_dir: "data".into(),
            backend: "memory",
            ring_size: 8,
            started: Instant::now(),
        }
    }
}

fn describe(ctx: &AdminContext, memory: MemoryStatus) -> Value {
    let node = &ctx.node;
    let health = ctx.kv.health();
    json!({
        "name": node.name,
        "version": node.version,
        "pid": node.pid,
        "uptime_secs": node.started.elapsed().as_secs(),
        "data_dir": node.data_dir,
        "http": node.http,
        "https": node.https,
        "pb": node.pb,
        "backend": node.backend,
        "ring_size": node.ring_size,
        "ready": health.ready,
        "takes_no_part": ctx.kv.no_part().map(NoPart::text),
        "problems": problems(&health),
        "known_losses": known_losses(&health),
        "request_memory": request_memory(memory),
        "cluster": ctx.cluster.summary(),
    })
}

/// The state of the memory budget of requests and answers in flight.
fn request_memory(memory: MemoryStatus) -> Value {
    json!({
        "limit_bytes": memory.bytes_max,
        "used_bytes": memory.bytes_used,
        "waiting_connections": memory.waiting,
        "ended_connections": memory.evicted_total,
        "refused_requests": memory.refused_total,
    })
}

/// The stores that know that something is missing.
pub(crate) fn known_losses(health: &Health) -> Vec<Value> {
    let loss = |(partition, places): &(u32, u64)| json!({ "partition": partition, "places": places });
    health.known_losses.iter().map(loss).collect()
}

/// The problems that an operator has to look at, one sentence each.
fn problems(health: &Health) -> Vec<String> {
    let poisoned =
        health.poisoned.iter().map(|(partition, why)| format!("partition {partition} takes no writes: {why}"));
    let full =
        health.disk_full.then(|| "a disk of the node is full: writes are refused until there is room".to_owned());
    poisoned.chain(full).collect()
}

fn stop(ctx: &AdminContext) -> Value {
    tracing::info!("stop asked for over the administration interface");
    ctx.stop.send_replace(true);
    json!({ "stopping": true })
}

/// One entry for each partition. Collecting them locks the index of every store for a moment, so it
/// runs on a blocking thread and not on a network thread.
async fn vnodes(ctx: &AdminContext) -> Result<Value, AdminError> {
    let kv = ctx.kv.clone();
    let vnodes = tokio::task::spawn_blocking(move || {
        let of_cluster = OfCluster::read(&kv);
        kv.vnode_status().iter().map(|(partition, status)| vnode(*partition, status, &of_cluster)).collect::<Vec<_>>()
    });
    let vnodes = vnodes.await.map_err(|e| AdminError::Failed(format!("vnode status: {e}")))?;
    Ok(json!({ "node": ctx.node.name, "vnodes": vnodes }))
}

/// What lies in the stores of a node and not where it belongs.
struct OfCluster {
    /// The partitions of which the node is the owner.
    owned: BTreeSet<u32>,
    hints: BTreeMap<u32, Amount>,
    owed: Vec<(ClassId, NodeId)>,
    filling: Vec<(ClassId, FillReason)>,
}

impl OfCluster {
    fn read(kv: &Kv) -> Self {
        let (ring, here) = (kv.ring(), kv.identity().node_id);
        let owned = (0..ring.size().get()).filter(|partition| ring.replica_set(*partition, 1).contains(&here));
        Self {
            owned: owned.collect(),
            hints: kv.hints().into_iter().collect(),
            owed: kv.owed_marks(),
            filling: kv.filling_classes(),
        }
    }

    fn of(&self, partition: u32) -> Value {
        let hints = self.hints.get(&partition).map(|held| json!({ "objects": held.keys, "bytes": held.bytes }));
        json!({
            "owner": self.owned.contains(&partition),
            "hints": hints,
            "owed_marks": self.owed.iter().filter(|(class, _)| class.partition == partition).count(),
            "filling_classes": self.filling.iter().filter(|(class, _)| class.partition == partition).count(),
        })
    }
}

fn vnode(partition: u32, s: &Status, of_cluster: &OfCluster) -> Value {
    json!({
        "partition": partition,
        "backend": s.backend,
        "status": store(s),
        "cluster": of_cluster.of(partition),
    })
}

/// The numbers of a store. A store that consists of several ones also has their numbers by name.
fn store(s: &Status) -> Value {
    let mut numbers = json!({
        "key_count": s.keys,
        "live_bytes": s.live_bytes,
        "dead_bytes": s.dead_bytes,
        "files": s.files,
        "index_bytes": s.index_bytes,
        "key_bytes": s.key_bytes,
        "index_bytes_per_key": index_bytes_per_key(s),
        "put_bytes": s.put_bytes,
        "bytes_written": s.bytes_written,
        "write_amplification": s.write_amplification(),
        "merges": s.merges,
        "merge_pending_bytes": s.merge_pending_bytes,
        "last_merge": s.last_merge.map(last_merge),
        "ledger": s.ledger.map(ledger),
        "read_errors": s.read_errors,
        "lost_ranges": s.lost_ranges,
        "disk_full": s.disk_full,
        "poisoned": s.poisoned,
    });
    if !s.children.is_empty() {
        let child = |child: &Status| (child.name.clone(), json!({ "backend": child.backend, "status": store(child) }));
        numbers["backends"] = Value::Object(s.children.iter().map(child).collect());
    }
    numbers
}

fn last_merge(merge: LastMerge) -> Value {
    json!({
        "ended_at_secs": merge.ended_at_secs,
        "bytes_before": merge.bytes_before,
        "bytes_after": merge.bytes_after,
    })
}

fn ledger(ledger: LedgerStatus) -> Value {
    json!({
        "disk_bytes": ledger.disk_bytes,
        "memory_bytes": ledger.memory_bytes,
        "bytes_written": ledger.written_bytes,
        "first_level_tables": ledger.first_level_tables,
        "pending_bytes": ledger.pending_bytes,
    })
}

/// The memory of the index for each key in addition to the key's own bytes; `None` if there are no
/// keys.
fn index_bytes_per_key(s: &Status) -> Option<f64> {
    if s.keys == 0 {
        return None;
    }
    Some(s.index_bytes.saturating_sub(s.key_bytes) as f64 / s.keys as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_key_leaves_out_the_key_itself() {
        let status = Status { keys: 10, index_bytes: 600, key_bytes: 200, ..Status::default() };
        assert_eq!(index_bytes_per_key(&status), Some(40.0));
        assert_eq!(index_bytes_per_key(&Status::default()), None);
    }
}
