//! Chooses a node for a part and asks it.

use super::{Event, RunningJob};
use crate::jobs::Inner;
use crate::part::{PartError, PartRequest, PartWork, PhaseOfPart};
use bytes::Bytes;
use ombak_mapreduce::{Attempt, Input, Inputs, KeyFilter, Work};
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Bucket, Error, NodeId, StoreFailure, StoreFailureKind};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How often a wait for a node looks whether the node is still up.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How long a part waits after its first failure. The time doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Which nodes have failed in which part since its last results.
#[derive(Debug, Default)]
pub(super) struct Troubles(BTreeMap<u64, Trouble>);

#[derive(Debug, Default)]
struct Trouble {
    nodes: BTreeSet<NodeId>,
    failures: u32,
}

impl Troubles {
    /// A node failed. Returns how long to wait before the next attempt.
    pub(super) fn failed(&mut self, part: u64, node: NodeId) -> Duration {
        let trouble = self.0.entry(part).or_default();
        trouble.nodes.insert(node);
        trouble.failures += 1;
        PAUSE_MIN.saturating_mul(1 << (trouble.failures - 1).min(16)).min(PAUSE_MAX)
    }

    /// The part has results.
    pub(super) fn over(&mut self, part: u64) {
        self.0.remove(&part);
    }

    /// The first node that has not failed. If all have, they are asked again from the first on.
    fn choose(&mut self, part: u64, nodes: &[NodeId]) -> Option<NodeId> {
        let Some(trouble) = self.0.get_mut(&part) else { return nodes.first().copied() };
        let next = nodes.iter().find(|node| !trouble.nodes.contains(node)).copied();
        next.or_else(|| {
            trouble.nodes.clear();
            nodes.first().copied()
        })
    }
}

impl RunningJob {
    /// Asks a replica for a piece of a part.
    pub(super) fn ask(
        &mut self,
        attempt: Attempt,
        work: Work,
        from: Option<Bytes>,
        map: Option<usize>,
        prereduce: Option<usize>,
    ) {
        let phase = |number: usize| Some(PhaseOfPart { number, phase: self.job.phases.get(number)?.clone() });
        let (map, prereduce) = (map.and_then(phase), prereduce.and_then(phase));
        let (work, nodes) = match work {
            Work::Keys(keys) => self.keys_near_data(keys),
            Work::Share(home) => self.share(home),
        };
        let request = PartRequest { job: self.id, work, from, map, prereduce, deadline: self.deadline };
        let Some(node) = self.troubles.choose(attempt.part, &nodes) else {
            let (node, down) = (self.node.kv.identity().node_id, "no replica of a part of the job can be asked");
            let outcome = Err(PartError::Lost(StoreFailure::new(StoreFailureKind::Unreachable, down).into()));
            return self.events.push(Box::pin(std::future::ready(Event::Part { attempt, node, outcome })));
        };
        self.nodes.insert(node);
        self.course.asked += 1;
        let deadline = self.deadline;
        let (owner, answer_by) = (self.node.clone(), self.node.runtime.now() + self.node.config.answer_time_max);
        self.events.push(Box::pin(async move {
            let piece = owner.part_client(node).piece(request);
            let outcome = match while_up(&owner, node, answer_by, piece).await.and_then(|sent| sent) {
                Ok(sent) => owner.local().read(sent, deadline).await,
                Err(error) => Err(error),
            };
            Event::Part { attempt, node, outcome }
        }));
    }

    /// A list of keys, and the replicas of the first. This node can do any part, because it reads
    /// what it lacks from others.
    fn keys_near_data(&self, keys: Vec<Input>) -> (PartWork, Vec<NodeId>) {
        let kv = &self.node.kv;
        let first = keys.first().and_then(|first| kv.share_of_key(&first.bucket, &first.key).ok());
        let mut nodes = first.map(|share| share.nodes).unwrap_or_default();
        let here = kv.identity().node_id;
        if !nodes.contains(&here) {
            nodes.push(here);
        }
        (PartWork::Keys(keys), nodes)
    }

    fn share(&self, home: u32) -> (PartWork, Vec<NodeId>) {
        let share = self.node.kv.share(home, self.n);
        let (bucket, filter) = match self.inputs() {
            Inputs::Bucket { bucket, filter } => (bucket.clone(), filter.clone()),
            _ => (Bucket::untyped(""), KeyFilter::default()),
        };
        let work = PartWork::Share { bucket, home, n: self.n, ring: share.ring, begun: self.begun, filter };
        (work, share.nodes)
    }
}

/// Waits for a node as long as it is up.
async fn while_up<T>(
    owner: &Inner,
    node: NodeId,
    answer_by: Instant,
    mut work: BoxFuture<'_, T>,
) -> Result<T, PartError> {
    loop {
        let look_at = (owner.runtime.now() + LOOK_INTERVAL).min(answer_by);
        if let Ok(done) = within(&*owner.runtime, Some(look_at), work.as_mut()).await {
            return Ok(done);
        }
        if owner.runtime.now() >= answer_by {
            return Err(PartError::Lost(Error::Timeout));
        }
        if !owner.kv.is_node_up(node) {
            let text = format!("node {node} went down while it worked on a part of a job");
            return Err(PartError::Lost(StoreFailure::new(StoreFailureKind::Unreachable, text).into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobsConfig;
    use crate::local::tests::Node;

    #[test]
    fn a_node_that_failed_is_asked_again_after_all_others() {
        let (a, b) = (NodeId::new(1), NodeId::new(2));
        let mut troubles = Troubles::default();
        assert_eq!(troubles.choose(1, &[a, b]), Some(a));
        let first = troubles.failed(1, a);
        assert_eq!(troubles.choose(1, &[a, b]), Some(b));
        assert_eq!(troubles.choose(2, &[a, b]), Some(a), "parts do not know of each other");
        assert!(troubles.failed(1, b) > first);
        assert_eq!(troubles.choose(1, &[a, b]), Some(a));
        (0..40).for_each(|_| assert!(troubles.failed(1, a) <= PAUSE_MAX));
        assert_eq!(troubles.choose(3, &[]), None);
    }

    /// A node that has the work and does not answer.
    async fn silent(owner: &Inner, node: NodeId, answer_by: Instant) -> PartError {
        while_up(owner, node, answer_by, Box::pin(std::future::pending::<()>())).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_node_that_does_not_answer_or_goes_down_is_not_waited_for() {
        let node = Node::open(JobsConfig::default());
        let (owner, here) = (&node.jobs.inner, node.kv.identity().node_id);
        let answer_by = Instant::now() + Duration::from_millis(30);
        assert_eq!(silent(owner, here, answer_by).await, PartError::Lost(Error::Timeout));
        let an_hour = Instant::now() + Duration::from_secs(3600);
        match silent(owner, NodeId::new(99), an_hour).await {
            PartError::Lost(Error::Storage(why)) => assert_eq!(why.kind, StoreFailureKind::Unreachable),
            other => panic!("{other:?}"),
        }
    }
}
