//! Chooses which node answers for which home partitions.

use crate::engine::Engine;
use crate::replica::{CoverageClient, CoverageHome, CoverageQuestion, CoverageRequest};
use ombak_ring::placement::Placement;
use ombak_ring::{CoveragePlan, ReplicaState, Ring};
use ombak_runtime::RuntimeExt;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId, StoreFailureKind};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the planner waits for nodes that know another version of a home partition, each time,
/// and how often in one listing.
const WAIT: Duration = Duration::from_millis(100);
const WAITS_MAX: u32 = 50;

/// The home partitions of one node.
pub(crate) struct PlannedPart {
    pub(super) node: NodeId,
    pub(super) homes: Vec<CoverageHome>,
}

/// Plans one listing or query, and plans again what failed.
pub(crate) struct Planner {
    pub(super) engine: Arc<Engine>,
    placement: Arc<Placement>,
    pub(super) seed: u64,
    begun: UnixMicros,
    pub(super) deadline: Option<Instant>,
    /// Who failed in which home partition, as it was then.
    failed: BTreeSet<(u32, NodeId)>,
    /// Those of them that only knew another version of the home partition.
    differed: BTreeSet<(u32, NodeId)>,
    /// How often the planner may still wait for nodes that know another version.
    waits_left: u32,
}

impl Planner {
    /// Plans with the placement in force.
    pub(crate) fn new(engine: Arc<Engine>, deadline: Option<Instant>) -> Result<Self, Error> {
        let (placement, begun) = (engine.placement(), engine.now());
        let seed = engine.config.runtime.random_u64()?;
        let (failed, differed) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { engine, placement, seed, begun, deadline, failed, differed, waits_left: WAITS_MAX })
    }

    /// The number of home partitions.
    pub(crate) fn homes(&self) -> u32 {
        self.placement.size().get()
    }

    /// The plan waits at most so often for nodes that know another version of a home partition, or
    /// cannot answer yet.
    pub(crate) fn waiting_at_most(self, waits_max: u32) -> Self {
        Self { waits_left: waits_max, ..self }
    }

    /// Parts for these classes of these home partitions, and whether all are covered.
    pub(super) fn plan(&self, classes: &[u32], homes: &[u32]) -> (Vec<PlannedPart>, bool) {
        let classes: SmallVec<[u32; 4]> = classes.into();
        let homes = homes.iter().map(|home| CoverageHome { home: *home, classes: classes.clone() });
        self.plan_homes(&homes.collect::<Vec<_>>())
    }

    /// Parts for home partitions that a node did not answer because of an error, and whether all
    /// are covered. The node is not asked for them again, as long as they do not change. Waits if
    /// nobody is left but nodes that know another version of a home partition: one side is about to
    /// hear of it.
    pub(super) async fn plan_again(
        &mut self,
        node: NodeId,
        homes: &[CoverageHome],
        error: &Error,
    ) -> (Vec<PlannedPart>, bool) {
        let failures = homes.iter().map(|home| (home.home, node));
        self.failed.extend(failures.clone());
        if matches!(error, Error::Storage(why) if why.kind == StoreFailureKind::Busy) {
            self.differed.extend(failures);
        }
        loop {
            self.take_placement();
            let (parts, is_complete) = self.plan_homes(homes);
            let is_different =
                homes.iter().any(|home| self.differed.iter().any(|(differed, _)| *differed == home.home));
            if is_complete || !is_different || self.waits_left == 0 {
                self.engine.coverage.counts.repeated(parts.len());
                return (parts, is_complete);
            }
            self.waits_left -= 1;
            self.engine.config.runtime.sleep(WAIT).await;
            for differed in std::mem::take(&mut self.differed) {
                self.failed.remove(&differed);
            }
        }
    }

    /// Goes on with the placement in force. Whoever failed in a home partition that has changed may
    /// be asked again.
    fn take_placement(&mut self) {
        let before = std::mem::replace(&mut self.placement, self.engine.placement());
        let is_same = |home: u32| before.home(home).version() == self.placement.home(home).version();
        self.failed.retain(|(home, _)| is_same(*home));
        self.differed.retain(|(home, _)| is_same(*home));
    }

    fn plan_homes(&self, homes: &[CoverageHome]) -> (Vec<PlannedPart>, bool) {
        // Homes with one ring in force and the same classes are planned together, so that all nodes
        // get about as many parts. Without a change of the ring that is all of them.
        let mut alike: BTreeMap<_, (&Arc<Ring>, Vec<u32>)> = BTreeMap::new();
        for CoverageHome { home, classes } in homes {
            let ring = self.placement.home(*home).in_force();
            alike.entry((ring.version().number, classes)).or_insert((ring, Vec::new())).1.push(*home);
        }
        let mut all = CoveragePlan::default();
        for ((_, classes), (ring, homes)) in alike {
            let plan = ring.coverage_of_homes(homes, classes, self.seed, |node, home, n| self.state(node, home, n));
            all.parts.extend(plan.parts);
            all.not_covered.extend(plan.not_covered);
        }
        all.parts.sort_by_key(|part| part.home);
        let is_complete = all.is_complete();
        (by_node(all), is_complete)
    }

    /// The question to a node.
    pub(super) fn request(&self, question: CoverageQuestion, homes: Vec<CoverageHome>) -> CoverageRequest {
        // Nothing of these homes has changed between their latest change and the placement in
        // force.
        let versions = homes.iter().map(|home| self.placement.home(home.home).version());
        let latest = versions.max_by_key(|version| version.number);
        let ring = latest.unwrap_or_else(|| self.placement.version());
        CoverageRequest { question, homes, ring, begun: self.begun, deadline: self.deadline }
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
