//! Drives changes of the ring when engines are connected by single messages: what the leader of the
//! metadata does in a cluster of members.

use super::decided::{Decided, DecidedState};
use crate::cluster::{Cluster, MemberStage};
use crate::starting::on_host;
use crate::world::{HostId, OUTSIDE, World};
use ombak_kv::Kv;
use ombak_repair::Repair;
use ombak_ring::placement::{Heard, ProofOrder, Report, Situation};
use ombak_ring::staging::MemberStatus;
use ombak_runtime::{Runtime, RuntimeExt, within};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause between two rounds in milliseconds.
const ROUND_MS: std::ops::Range<u64> = 200..1_000;
/// How long a report may take.
const REPORT_MAX: Duration = Duration::from_secs(1);
/// How often of 100 rounds another leader takes over, which has heard nothing yet.
const TAKES_OVER: u64 = 4;
/// How often of 100 times a member that can be reached does not follow, or report, in a round.
const LAGS: u64 = 30;

/// The driver, and what it knows.
pub(crate) struct Driver {
    world: World,
    cluster: Arc<Mutex<Cluster>>,
    decided: Decided,
    since: Instant,
    heard: BTreeMap<NodeId, (Report, Instant)>,
    orders: BTreeMap<NodeId, Vec<ProofOrder>>,
}

impl Driver {
    pub(crate) fn new(world: &World, cluster: &Arc<Mutex<Cluster>>) -> Self {
        let decided = cluster.lock().decided.clone();
        let since = world.runtime(OUTSIDE).now();
        let (heard, orders) = (BTreeMap::new(), BTreeMap::new());
        Self { world: world.clone(), cluster: cluster.clone(), decided, since, heard, orders }
    }

    /// Drives until the world ends. Processes follow the log in the same rounds.
    pub(crate) async fn run(mut self) {
        let runtime = self.world.runtime(OUTSIDE);
        let mut random = self.world.fork_random();
        loop {
            runtime.sleep(Duration::from_millis(random.within(ROUND_MS))).await;
            let Some(now) = self.decided.newest() else { continue };
            let reached = self.reached();
            for host in &reached {
                if !random.chance(LAGS) {
                    self.let_follow(*host, now.clone());
                }
            }
            let goes = |status: &MemberStatus| matches!(status, MemberStatus::Leaving | MemberStatus::Exiting);
            if now.placement.is_settled() && now.new.is_empty() && !now.members.values().any(goes) {
                continue;
            }
            if random.chance(TAKES_OVER) {
                (self.since, self.heard, self.orders) = (runtime.now(), BTreeMap::new(), BTreeMap::new());
            }
            let asked: Vec<HostId> = reached.into_iter().filter(|_| !random.chance(LAGS)).collect();
            self.hear(asked).await;
            self.take_steps(&now);
            self.let_members_go(&now);
        }
    }

    /// The hosts of nodes that the log reaches.
    fn reached(&self) -> Vec<HostId> {
        let cluster = self.cluster.lock();
        let runs = |host: &HostId| cluster.node(*host).kv.is_some() && !self.world.is_paused(*host);
        cluster.hosts().into_iter().filter(runs).filter(|host| cluster.is_connected(*host)).collect()
    }

    fn let_follow(&self, host: HostId, state: Arc<DecidedState>) {
        let Some(follower) = self.cluster.lock().wires.follower(host) else { return };
        self.world.runtime(host).spawn(Box::pin(async move { follower.adopt(state).await }));
    }

    async fn hear(&mut self, hosts: Vec<HostId>) {
        let runtime = self.world.runtime(OUTSIDE);
        for host in hosts {
            let Some((node, kv)) = self.node(host) else { continue };
            let orders = self.orders.get(&node).cloned().unwrap_or_default();
            let report = on_host(&self.cluster, host, async move {
                let repair = Repair::of(&kv);
                repair.set_proofs_wanted(orders);
                repair.ring_report(kv.confirmed_placement())
            });
            if let Ok(Ok(report)) = within(&*runtime, Some(runtime.now() + REPORT_MAX), report).await {
                self.heard.insert(node, (report, runtime.now()));
            }
        }
    }

    fn node(&self, host: HostId) -> Option<(NodeId, Kv)> {
        let cluster = self.cluster.lock();
        let node = cluster.node(host);
        Some((node.id?, node.kv.clone()?))
    }

    fn take_steps(&mut self, state: &DecidedState) {
        let now = self.world.runtime(OUTSIDE).now();
        let heard_of = |node: &NodeId| {
            let heard = self.heard.get(node);
            let last = heard.map_or(self.since, |(_, at)| *at);
            let report = heard.map(|(report, _)| report.clone());
            (*node, Heard { report, silent_for: now.saturating_duration_since(last) })
        };
        let heard: BTreeMap<NodeId, Heard> = state.members.keys().map(heard_of).collect();
        let ns = self.cluster.lock().all_n_vals();
        let situation = Situation { placement: &state.placement, members: &state.members, ns: &ns, heard: &heard };
        let decision = situation.decide();
        self.cluster.lock().note_decision(&decision);
        self.decided.take(&decision.steps);
        self.orders = decision.proofs;
        let confirmed = |node: &NodeId| self.heard.get(node).map(|(report, _)| report.confirmed);
        let newest = state.placement.version();
        let behind = |node: &NodeId| confirmed(node).is_none_or(|confirmed| confirmed < newest);
        if !state.members.keys().any(behind) {
            self.decided.all_confirmed(newest);
        }
    }

    /// Members that leave go when they own nothing, hold nothing for others and owe nothing.
    fn let_members_go(&self, state: &DecidedState) {
        for (node, status) in &state.members {
            match status {
                MemberStatus::Leaving if self.has_given_all(*node, state) => {
                    self.decided.set_status(*node, MemberStatus::Exiting);
                }
                MemberStatus::Exiting if self.all_follow(state) && self.has_given_all(*node, state) => {
                    self.decided.remove(*node);
                }
                _ => {}
            }
        }
    }

    fn has_given_all(&self, node: NodeId, state: &DecidedState) -> bool {
        let has_confirmed =
            self.heard.get(&node).is_some_and(|(report, _)| report.confirmed >= state.placement.version());
        if !state.placement.is_settled() || state.placement.nodes().contains(&node) || !has_confirmed {
            return false;
        }
        let cluster = self.cluster.lock();
        let settled = cluster
            .nodes
            .iter()
            .find(|of| of.id == Some(node))
            .and_then(|of| Some(Repair::of(of.kv.as_ref()?).settled()));
        settled.is_some_and(|now| now.partitions_with_hints == 0 && now.owed_marks == 0 && now.transfers == 0)
    }

    fn all_follow(&self, state: &DecidedState) -> bool {
        let cluster = self.cluster.lock();
        let mut members = cluster.nodes.iter().filter(|node| node.stage == MemberStage::Member);
        members.all(|node| self.decided.followed_by(node.host).is_some_and(|followed| followed.index >= state.index))
    }
}
