//! The other nodes, for the engine.
//!
//! Hot path: each request over several nodes looks up each of its replicas here.

use super::member::Member;
use crate::coverage::RemoteCoverage;
use crate::deliberate_faults::removed_nodes_take_part;
use crate::jobs::RemoteParts;
use crate::liveness::Liveness;
use crate::replica::{Caller, RemoteReplica};
use arc_swap::ArcSwap;
use ombak_failure_detection::{FailureDetector, PeerState};
use ombak_jobs::{NoPartNodes, PartClient, PartNodes};
use ombak_kv::Peers;
use ombak_kv::replica::{
    ConditionalClient, CoverageClient, NodeCounter, ReapingClient, ReplicaClient, TransferClient, UnreachableNode,
};
use ombak_peer::PeerCounts;
use ombak_ring::ReplicaState;
use ombak_stats::{ClusterFigures, PeerFigures};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The peers of a node. The engine is opened with them before there is a transport, because the
/// transport needs the engine's services. Until it is there, no node is up.
pub struct ClusterPeers {
    liveness: Arc<dyn Liveness>,
    table: ArcSwap<Table>,
    /// What changes the table. Locked while it is replaced.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: Vec<Member>,
    excluded: Arc<ExcludedNodes>,
    caller: Option<Arc<Caller>>,
}

/// Nodes that the cluster has excluded from some of the work. This node can be among them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ExcludedNodes {
    /// Members that stand in for nobody: they leave, or own nothing yet.
    pub(crate) no_fallbacks: BTreeSet<NodeId>,
    /// Members that an operator has marked as down.
    pub(crate) marked_down: BTreeSet<NodeId>,
    /// Nodes that were removed, and that rings in use still have.
    pub(crate) removed: BTreeSet<NodeId>,
}

/// The members, by their id.
#[derive(Default)]
struct Table {
    entries: BTreeMap<NodeId, Entry>,
    excluded: Arc<ExcludedNodes>,
    failure_detector: Option<Arc<FailureDetector>>,
}

struct Entry {
    name: String,
    replica: Arc<dyn ReplicaClient>,
    transfer: Arc<dyn TransferClient>,
    coverage: Arc<dyn CoverageClient>,
    /// Whether there is a way to send requests.
    is_connected: bool,
}

impl ClusterPeers {
    /// Begins without members.
    pub fn new(liveness: Arc<dyn Liveness>) -> Self {
        Self { liveness, table: ArcSwap::default(), state: Mutex::default() }
    }

    /// Replaces the list of the other members, for requests that begin from now on. Connections to
    /// former members, and to former addresses, are closed.
    pub fn set_members(&self, members: Vec<Member>) {
        let mut state = self.state.lock();
        let only_goes = || members.iter().all(|member| state.members.iter().any(|former| former.id == member.id));
        let keeps_watching = removed_nodes_take_part() && only_goes();
        if let Some(caller) = state.caller.as_ref().filter(|_| !keeps_watching) {
            for former in &state.members {
                if members.iter().all(|member| member.id != former.id) {
                    caller.transport.forget_address(former.id);
                }
            }
            members.iter().for_each(|member| caller.transport.set_address(member.id, member.address));
            caller.watch(&members);
        }
        state.members = members;
        self.replace_table(&state);
    }

    /// Says which nodes are excluded, for requests that begin from now on.
    pub(crate) fn set_excluded(&self, excluded: ExcludedNodes) {
        let mut state = self.state.lock();
        if *state.excluded != excluded {
            state.excluded = Arc::new(excluded);
            self.replace_table(&state);
        }
    }

    /// The list of the other members.
    pub fn members(&self) -> Vec<Member> {
        self.state.lock().members.clone()
    }

    /// Sends requests over a transport from now on.
    pub(crate) fn connect(&self, caller: Caller) {
        let mut state = self.state.lock();
        state.members.iter().for_each(|member| caller.transport.set_address(member.id, member.address));
        caller.watch(&state.members);
        state.caller = Some(Arc::new(caller));
        self.replace_table(&state);
    }

    /// Sends no requests any more. This also ends the circle in which the engine, its peers, the
    /// transport and its services hold each other.
    pub(crate) fn disconnect(&self) {
        let mut state = self.state.lock();
        state.caller = None;
        self.replace_table(&state);
    }

    /// The way to other nodes, while there is one.
    pub(crate) fn caller(&self) -> Option<Arc<Caller>> {
        self.state.lock().caller.clone()
    }

    fn replace_table(&self, state: &State) {
        let clients = |node| -> (Arc<dyn ReplicaClient>, Arc<dyn TransferClient>) {
            match &state.caller {
                Some(caller) => {
                    let remote = Arc::new(RemoteReplica::new(node, caller.clone()));
                    (remote.clone(), remote)
                }
                None => (Arc::new(UnreachableNode(node)), Arc::new(UnreachableNode(node))),
            }
        };
        let coverage = |node| -> Arc<dyn CoverageClient> {
            match &state.caller {
                Some(caller) => Arc::new(RemoteCoverage::new(node, caller.clone())),
                None => Arc::new(UnreachableNode(node)),
            }
        };
        let is_connected = state.caller.is_some();
        let entry = |m: &Member| {
            let (replica, transfer) = clients(m.id);
            Entry { name: m.name.clone(), replica, transfer, coverage: coverage(m.id), is_connected }
        };
        let entries = state.members.iter().map(|member| (member.id, entry(member))).collect();
        let failure_detector = state.caller.as_ref().and_then(|caller| caller.failure_detector.clone());
        self.table.store(Arc::new(Table { entries, excluded: state.excluded.clone(), failure_detector }));
    }
}

impl PartNodes for ClusterPeers {
    fn part_client(&self, node: NodeId) -> Arc<dyn PartClient> {
        match &self.state.lock().caller {
            Some(caller) => Arc::new(RemoteParts::new(node, caller.clone())),
            None => Arc::new(NoPartNodes),
        }
    }
}

impl Peers for ClusterPeers {
    fn is_up(&self, node: NodeId) -> bool {
        self.table.load().entries.get(&node).is_some_and(|entry| entry.is_connected) && self.liveness.is_up(node)
    }

    fn may_stand_in(&self, node: NodeId) -> bool {
        let table = self.table.load();
        !table.excluded.no_fallbacks.contains(&node) && !table.excluded.removed.contains(&node)
    }

    fn was_removed(&self, node: NodeId) -> bool {
        self.table.load().excluded.removed.contains(&node)
    }

    fn is_marked_down(&self, node: NodeId) -> bool {
        self.table.load().excluded.marked_down.contains(&node)
    }

    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        match self.table.load().entries.get(&node) {
            Some(entry) => entry.replica.clone(),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn reaping(&self, node: NodeId) -> Arc<dyn ReapingClient> {
        match &self.state.lock().caller {
            Some(caller) => Arc::new(RemoteReplica::new(node, caller.clone())),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    /// The handshake tells the number of starts, and each process begins to count at 0.
    fn first_counter(&self, node: NodeId) -> Option<NodeCounter> {
        let caller = self.state.lock().caller.clone()?;
        let boot = caller.transport.live_session(node)?.boot_number;
        Some(NodeCounter { boot, counter: 0 })
    }

    fn conditional(&self, node: NodeId) -> Arc<dyn ConditionalClient> {
        match &self.state.lock().caller {
            Some(caller) => Arc::new(RemoteReplica::new(node, caller.clone())),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn figures(&self) -> ClusterFigures {
        let (members, caller) = {
            let state = self.state.lock();
            (state.members.clone(), state.caller.clone())
        };
        let Some(caller) = caller else { return ClusterFigures::default() };
        let mut counts = caller.transport.counts();
        let view = caller.failure_detector.as_ref().map(|failure_detector| failure_detector.view());
        let peers = members.into_iter().map(|member| {
            let counts = counts.remove(&member.id).unwrap_or_default();
            let is_connected = caller.transport.live_session(member.id).is_some();
            let state = view.as_ref().and_then(|view| view.peers.get(&member.id)).map(|peer| peer.state);
            let up = Up { state, for_requests: self.is_up(member.id) };
            figures_of(member.name, up, is_connected, &counts)
        });
        ClusterFigures { replicas: caller.counters.counts(), peers: peers.collect(), ..ClusterFigures::default() }
    }

    fn transfer(&self, node: NodeId) -> Arc<dyn TransferClient> {
        match self.table.load().entries.get(&node) {
            Some(entry) => entry.transfer.clone(),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn members(&self) -> Vec<NodeId> {
        self.table.load().entries.keys().copied().collect()
    }

    fn name(&self, node: NodeId) -> Option<String> {
        self.table.load().entries.get(&node).map(|entry| entry.name.clone())
    }

    fn coverage(&self, node: NodeId) -> Arc<dyn CoverageClient> {
        match self.table.load().entries.get(&node) {
            Some(entry) => entry.coverage.clone(),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn replica_state(&self, node: NodeId, home: u32, n: u32) -> ReplicaState {
        let is_up = self.is_up(node);
        let Some(view) = self.table.load().failure_detector.as_ref().map(|failure_detector| failure_detector.view())
        else {
            return ReplicaState { is_up, participates: true, is_full: true, missed_writes: false };
        };
        let told = view.peers.get(&node).and_then(|peer| peer.soft_state.as_ref());
        ReplicaState {
            is_up,
            participates: told.is_none_or(|state| !state.avoids_coverage),
            is_full: told.is_none_or(|state| !state.filling.contains(home, n)),
            missed_writes: view.is_owed(node, home, n),
        }
    }
}

/// Whether a node is up.
struct Up {
    /// What failure detection says, if this node detects failures.
    state: Option<PeerState>,
    /// Whether requests are sent to it.
    for_requests: bool,
}

impl Up {
    const fn word(&self) -> &'static str {
        match self.state {
            Some(PeerState::Up) => "up",
            Some(PeerState::Suspect) => "suspect",
            Some(PeerState::Down) => "down",
            Some(PeerState::Left) => "left",
            None if self.for_requests => "up",
            None => "down",
        }
    }

    /// Whether it is there, but does not answer requests.
    fn is_slow(&self) -> bool {
        self.state.is_some_and(PeerState::is_up) && !self.for_requests
    }
}

fn figures_of(name: String, up: Up, is_connected: bool, counts: &PeerCounts) -> PeerFigures {
    let failures = vec![
        ("unreachable", counts.unreachable),
        ("overload", counts.overload),
        ("refused", counts.refused),
        ("timeout", counts.timeout),
        ("closed", counts.closed),
        ("answer_lost", counts.answer_lost),
    ];
    let PeerCounts { bytes_received, bytes_sent, served, calls: requests, .. } = *counts;
    PeerFigures {
        name,
        state: up.word(),
        is_up: up.for_requests,
        is_slow: up.is_slow(),
        is_connected,
        bytes_received,
        bytes_sent,
        requests,
        served,
        failures,
    }
}
