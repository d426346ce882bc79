//! Starts nodes, and lets them form a cluster.

use crate::bucket_kinds::BucketKind;
use crate::changes::Follower;
use crate::cluster::{Cluster, NoStart, PEER_PORT, RING_SIZE, Wiring, no_start};
use crate::network::address_of;
use crate::times;
use crate::typed::TypedKind;
use crate::world::HostId;
use ombak_cluster::MemberNode;
use ombak_kv::Kv;
use ombak_repair::Repair;
use ombak_ring::placement::Placement;
use ombak_ring::{Ring, RingVersion};
use ombak_runtime::Runtime;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The lineage of the ring of engines that are connected by messages.
const LINEAGE: u64 = 7;

/// All nodes, which tasks share.
type Shared = Arc<Mutex<Cluster>>;

/// Starts all nodes, and lets them form a cluster.
pub(crate) async fn form(cluster: &Shared) -> Result<(), NoStart> {
    let (hosts, wiring) = {
        let cluster = cluster.lock();
        (cluster.hosts(), cluster.wiring)
    };
    match wiring {
        Wiring::Messages => agree_on_ring(cluster, &hosts),
        Wiring::Streams => {
            create_types(cluster, hosts[0])?;
            for host in &hosts {
                start(cluster, *host).await?;
            }
            join(cluster, &hosts).await
        }
    }
}

/// Starts a node whose process has ended, or never ran.
pub(crate) async fn start(cluster: &Shared, host: HostId) -> Result<(), NoStart> {
    if cluster.lock().wiring == Wiring::Messages {
        return start_engine(&mut cluster.lock(), host);
    }
    let parts = {
        let mut cluster = cluster.lock();
        cluster.network.process_began(host);
        cluster.member_parts(host)?
    };
    let started = on_host(cluster, host, MemberNode::start(parts)).await?;
    let member = started.map_err(|e| no_start(host, e))?;
    cluster.lock().runs(host, member.kv().clone(), Some(member));
    Ok(())
}

/// Runs something in the process of a host.
pub(crate) async fn on_host<T: Send + 'static>(
    cluster: &Shared,
    host: HostId,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, NoStart> {
    let runtime = cluster.lock().world.runtime(host);
    let (give, take) = oneshot::channel();
    runtime.spawn(Box::pin(async move {
        // The run may be over.
        drop(give.send(work.await));
    }));
    take.await.map_err(|_| no_start(host, "its process has ended"))
}

/// Creates the bucket types while a node is alone. Its metadata takes them over.
pub(crate) fn create_types(cluster: &Shared, host: HostId) -> Result<(), NoStart> {
    let kv = Kv::open(cluster.lock().engine_parts(host)?).map_err(|e| no_start(host, e))?;
    create_kinds(&cluster.lock(), host, &kv)?;
    kv.close();
    Ok(())
}

fn create_kinds(cluster: &Cluster, host: HostId, kv: &Kv) -> Result<(), NoStart> {
    for kind in BucketKind::ALL {
        kind.create(kv.buckets()).map_err(|e| no_start(host, e))?;
    }
    let types = if cluster.whole_bytes_max.is_some() { TypedKind::ALL.as_slice() } else { &[] };
    types.iter().try_for_each(|kind| kind.create(kv.buckets())).map_err(|e| no_start(host, e))
}

async fn join(cluster: &Shared, hosts: &[HostId]) -> Result<(), NoStart> {
    let first = hosts[0];
    let member = |host: HostId| -> Result<MemberNode, NoStart> {
        cluster.lock().node(host).member.clone().ok_or_else(|| no_start(host, "it does not run"))
    };
    for host in &hosts[1..] {
        let (joins, address) = (member(*host)?, address_of(first, PEER_PORT));
        let joined = on_host(cluster, *host, async move { joins.join(address).await }).await?;
        joined.map_err(|e| no_start(*host, e))?;
    }
    let leader = member(first)?;
    let committed = on_host(cluster, first, async move {
        leader.plan().await?;
        leader.commit().await
    });
    committed.await?.map_err(|e| no_start(first, e))?;
    let ring = member(first)?.kv().ring();
    cluster.lock().set_ring(ring);
    Ok(())
}

fn agree_on_ring(cluster: &Shared, hosts: &[HostId]) -> Result<(), NoStart> {
    let mut cluster = cluster.lock();
    for host in hosts {
        start_engine(&mut cluster, *host)?;
    }
    let ids: Vec<NodeId> = cluster.nodes.iter().filter_map(|node| node.id).collect();
    let owners: Vec<NodeId> = ids.iter().copied().cycle().take(RING_SIZE as usize).collect();
    let ring = Ring::from_owners(&owners, RingVersion::first(LINEAGE)).map_err(|e| no_start(hosts[0], e))?;
    cluster.decided.begin(Placement::of_ring(Arc::new(ring.clone())));
    cluster.set_ring(Arc::new(ring));
    hosts.iter().try_for_each(|host| enter_ring(&cluster, *host))
}

/// Starts an engine alone. If the others have formed a cluster, it follows what they have decided.
fn start_engine(cluster: &mut Cluster, host: HostId) -> Result<(), NoStart> {
    cluster.network.process_began(host);
    let kv = Kv::open(cluster.engine_parts(host)?).map_err(|e| no_start(host, e))?;
    // From here on the node answers questions about copies.
    let (repair, peers) = (Repair::of(&kv), Arc::new(cluster.wires.peers_of(host)));
    repair.start_exchanges(&kv, peers, times::exchanges()).map_err(|e| no_start(host, e))?;
    create_kinds(cluster, host, &kv)?;
    let follower = Follower::new(cluster.decided.clone(), host, kv.clone(), cluster.world.runtime(host));
    cluster.wires.attach(host, follower, kv.clone());
    cluster.runs(host, kv, None);
    enter_ring(cluster, host)
}

/// Puts in force what the node has saved, or what is decided if it has saved nothing.
fn enter_ring(cluster: &Cluster, host: HostId) -> Result<(), NoStart> {
    let (Some(newest), Some(kv)) = (cluster.decided.newest(), &cluster.node(host).kv) else { return Ok(()) };
    let followed = cluster.decided.followed_by(host).unwrap_or(newest);
    let saved = kv.directory().read_placement::<Placement>().map_err(|e| no_start(host, e))?;
    kv.set_placement(saved.unwrap_or_else(|| (*followed.placement).clone())).map_err(|e| no_start(host, e))?;
    cluster.decided.follows(host, followed);
    Repair::of(kv).start();
    Ok(())
}
