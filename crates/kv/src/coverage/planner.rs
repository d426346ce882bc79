//! Chooses which node answers for which home partitions.

use crate::engine::Engine;
use crate::replica::{CoverageClient, CoverageHome, CoverageQuestion, CoverageRequest};
use ombak_ring::{CoveragePlan, ReplicaState, Ring};
use ombak_runtime::RuntimeExt;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// The home partitions of one node.
pub(crate) struct PlannedPart {
    pub(super) node: NodeId,
    pub(super) homes: Vec<CoverageHome>,
}

/// Plans one listing or query, and plans again what failed.
pub(crate) struct Planner {
    pub(super) engine: Arc<Engine>,
    ring: Arc<Ring>,
    seed: u64,
    begun: UnixMicros,
    pub(super) deadline: Option<Instant>,
    /// Who failed in which home partition.
    failed: BTreeSet<(u32, NodeId)>,
}

impl Planner {
    /// Plans with the ring in force.
    pub(crate) fn new(engine: Arc<Engine>, deadline: Option<Instant>) -> Result<Self, Error> {
        let (ring, begun) = (engine.ring(), engine.now());
        let seed = engine.config.runtime.random_u64()?;
        Ok(Self { engine, ring, seed, begun, deadline, failed: BTreeSet::new() })
    }

    /// The number of home partitions.
    pub(crate) fn homes(&self) -> u32 {
        self.ring.size().get()
    }

    /// Parts for these classes of all home partitions, and whether all are covered.
    pub(super) fn plan(&self, classes: &[u32]) -> (Vec<PlannedPart>, bool) {
        let plan = self.ring.coverage(classes, self.seed, |node, home, n| self.state(node, home, n));
        let is_complete = plan.is_complete();
        (by_node(plan), is_complete)
    }

    /// Parts for home partitions that a node did not answer, and whether all are covered. The node
    /// is not asked for them again.
    pub(super) fn plan_again(&mut self, node: NodeId, homes: &[CoverageHome]) -> (Vec<PlannedPart>, bool) {
        self.failed.extend(homes.iter().map(|home| (home.home, node)));
        let mut all = CoveragePlan::default();
        for home in homes {
            let state = |node, home, n| self.state(node, home, n);
            let plan = self.ring.coverage_of_homes([home.home], &home.classes, self.seed, state);
            all.parts.extend(plan.parts);
            all.not_covered.extend(plan.not_covered);
        }
        let is_complete = all.is_complete();
        let parts = by_node(all);
        self.engine.coverage_counts.repeated(parts.len());
        (parts, is_complete)
    }

    /// The question to a node.
    pub(super) fn request(&self, question: CoverageQuestion, homes: Vec<CoverageHome>) -> CoverageRequest {
        CoverageRequest { question, homes, ring: self.ring.version(), begun: self.begun, deadline: self.deadline }
    }

    pub(super) fn client(&self, node: NodeId) -> Arc<dyn CoverageClient> {
        self.engine.coverage_client(node)
    }

    fn state(&self, node: NodeId, home: u32, n: u32) -> ReplicaState {
        let state = self.engine.replica_state(node, home, n);
        ReplicaState { is_up: state.is_up && !self.failed.contains(&(home, node)), ..state }
    }
}

fn by_node(plan: CoveragePlan) -> Vec<PlannedPart> {
    let mut nodes: BTreeMap<NodeId, Vec<CoverageHome>> = BTreeMap::new();
    for part in plan.parts {
        nodes.entry(part.node).or_default().push(CoverageHome { home: part.home, classes: part.classes });
    }
    nodes.into_iter().map(|(node, homes)| PlannedPart { node, homes }).collect()
}
