//! One cluster, from its forming to the join of one more node.

use super::traffic::Traffic;
use crate::cluster::{Backends, Cluster, Machines, MemberStage, NoStart, PEER_PORT, Wiring, no_start};
use crate::made::Made;
use crate::network::address_of;
use crate::oracle::Oracle;
use crate::starting::{form, on_host, start};
use crate::world::{EndOfWorld, HostId, OUTSIDE, World};
use bytes::Bytes;
use ombak_cluster::MemberNode;
use ombak_kv::{PutOptions, PutRequest};
use ombak_runtime::RuntimeExt;
use ombak_types::{Bucket, Object, Sibling, VectorClock};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const SEED: u64 = 1;
const VALUE_BYTES: usize = 1024;
const N_VAL: u32 = 3;
/// How many puts are counted, for each of both kinds of nodes.
const PUTS: u32 = 200;
/// How long everything has time to become quiet, and how long the rest is counted.
const QUIET: Duration = Duration::from_secs(20);
const REST: Duration = Duration::from_secs(20);
/// How often to look whether a change has ended.
const LOOK: Duration = Duration::from_millis(100);
/// The simulated time that all of it may take.
const LIMIT: Duration = Duration::from_secs(3_600);

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// For each put through a node that keeps the key.
    pub put_at_replica: PutCounts,
    /// For each put through a node that does not keep the key; `None` if all nodes do.
    pub put_elsewhere: Option<PutCounts>,
    /// All nodes together in a second in which nothing happens.
    pub at_rest: Traffic,
    /// The join of one more node without objects.
    pub join: JoinCounts,
}

/// Counts of one put.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PutCounts {
    /// What it takes, less what nodes send at rest.
    pub traffic: Traffic,
}

/// Counts of a join, from its commit to the last step of the last home.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinCounts {
    /// What it takes, less what nodes send at rest.
    pub traffic: Traffic,
    /// Its simulated time.
    pub took: Duration,
    /// How often the placement has changed: one entry of the log for each.
    pub entries: u64,
    /// How many homes got other replicas.
    pub homes: u32,
}

/// Counts in a cluster of so many nodes, n_val 3.
pub fn count(nodes: usize, ring_size: u32) -> Result<Counts, NoStart> {
    let made = Made::default();
    let world = World::new(SEED, nodes + 1);
    let _end = EndOfWorld(world.clone());
    let machines = Machines { nodes, spares: 1, wiring: Wiring::Streams, backends: Backends::OnlyMemory };
    let witness = Oracle::default().witness;
    let mut cluster = Cluster::new(&world, machines, &made, witness);
    (cluster.ring_size, cluster.has_default_times) = (ring_size, true);
    let counting = Counting { world: world.clone(), cluster: Arc::new(Mutex::new(cluster)) };
    let cluster = counting.cluster.clone();
    let counted = world.run(LIMIT, counting.all());
    cluster.lock().end();
    counted.unwrap_or_else(|stuck| Err(no_start(OUTSIDE, stuck)))
}

struct Counting {
    world: World,
    cluster: Arc<Mutex<Cluster>>,
}

impl Counting {
    async fn all(self) -> Result<Counts, NoStart> {
        form(&self.cluster).await?;
        self.sleep(QUIET).await;
        let (before, began) = (self.traffic(), self.world.elapsed());
        self.sleep(REST).await;
        let at_rest = self.traffic().since(before).per(self.world.elapsed() - began);
        let put_at_replica = self.puts(true, at_rest).await?.ok_or_else(|| no_start(OUTSIDE, "no node keeps a key"))?;
        let put_elsewhere = self.puts(false, at_rest).await?;
        let join = self.join(at_rest).await?;
        Ok(Counts { put_at_replica, put_elsewhere, at_rest, join })
    }

    async fn sleep(&self, time: Duration) {
        self.world.runtime(OUTSIDE).sleep(time).await;
    }

    fn traffic(&self) -> Traffic {
        Traffic::of(&self.cluster.lock())
    }

    fn member(&self, host: HostId) -> Result<MemberNode, NoStart> {
        self.cluster.lock().node(host).member.clone().ok_or_else(|| no_start(host, "it does not run"))
    }

    /// Puts new keys, each through a node that keeps it or through one that does not.
    async fn puts(&self, at_replica: bool, at_rest: Traffic) -> Result<Option<PutCounts>, NoStart> {
        let (before, began) = (self.traffic(), self.world.elapsed());
        for number in 0..PUTS {
            let key = Bytes::from(format!("{at_replica}-{number:08}"));
            let bucket = Bucket::typed("single", "b");
            let Some(host) = self.host_for(&bucket, &key, at_replica, number as usize)? else { return Ok(None) };
            let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(vec![b'v'; VALUE_BYTES])] };
            let request = PutRequest { bucket, key: Some(key), object, options: PutOptions::default() };
            let kv = self.member(host)?.kv().clone();
            on_host(&self.cluster, host, async move { kv.put(request).await }).await?.map_err(|e| no_start(host, e))?;
        }
        // The last copies arrive after the last acknowledgement.
        self.sleep(Duration::from_secs(1)).await;
        let of_rest = at_rest.times((self.world.elapsed() - began).as_secs_f64());
        let traffic = self.traffic().since(before).since(of_rest).times(1.0 / f64::from(PUTS));
        Ok(Some(PutCounts { traffic }))
    }

    /// A host whose node keeps a key, or does not.
    fn host_for(&self, bucket: &Bucket, key: &[u8], at_replica: bool, turn: usize) -> Result<Option<HostId>, NoStart> {
        let hosts = self.cluster.lock().member_hosts();
        let first = self.member(hosts[0])?;
        let kept_by = first.kv().preflist(bucket, key).map_err(|e| no_start(hosts[0], e))?;
        let keeps = |host: &HostId| kept_by.iter().any(|item| item.node == format!("node{}", host.0));
        let fitting: Vec<HostId> = hosts.into_iter().filter(|host| keeps(host) == at_replica).collect();
        Ok(fitting.get(turn % fitting.len().max(1)).copied())
    }

    /// Lets the spare node join.
    async fn join(&self, at_rest: Traffic) -> Result<JoinCounts, NoStart> {
        let hosts = self.cluster.lock().hosts();
        let spare = HostId(hosts.len() + 1);
        start(&self.cluster, spare).await?;
        let (joins, address) = (self.member(spare)?, address_of(hosts[0], PEER_PORT));
        let joined = on_host(&self.cluster, spare, async move { joins.join(address).await }).await?;
        joined.map_err(|e| no_start(spare, e))?;
        self.sleep(QUIET).await;
        let (before, began, first) = (self.traffic(), self.world.elapsed(), self.member(hosts[0])?);
        let placement = first.kv().placement();
        let leader = first.clone();
        let committed = on_host(&self.cluster, hosts[0], async move {
            leader.plan().await?;
            leader.commit().await
        });
        committed.await?.map_err(|e| no_start(hosts[0], e))?;
        self.cluster.lock().node_mut(spare).stage = MemberStage::Member;
        while !self.is_over(placement.version().number) {
            self.sleep(LOOK).await;
        }
        let took = self.world.elapsed() - began;
        let after = first.kv().placement();
        let differs = |home: &u32| placement.home(*home).replica_set(N_VAL) != after.home(*home).replica_set(N_VAL);
        Ok(JoinCounts {
            traffic: self.traffic().since(before).since(at_rest.times(took.as_secs_f64())),
            took,
            entries: after.version().number - placement.version().number,
            homes: (0..after.size().get()).filter(differs).count() as u32,
        })
    }

    /// Whether all nodes have a settled placement that is newer than a number.
    fn is_over(&self, number: u64) -> bool {
        let cluster = self.cluster.lock();
        let mut members = cluster.nodes.iter().filter_map(|node| node.member.as_ref());
        members.all(|member| {
            let placement = member.kv().placement();
            placement.version().number > number && placement.is_settled()
        })
    }
}
