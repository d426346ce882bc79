//! A put on a node of a cluster: finds a node that coordinates it.

use super::costs::Costs;
use crate::config::WithoutMajority;
use crate::coordination::Refusal;
use crate::engine::{Kv, NextCoordinator, check_room};
use crate::partition::Deadline;
use crate::replica::{ForwardedPut, PutFailure};
use crate::requests::{GetOptions, GetReply, GetRequest, PutCondition, PutReply, PutRequest};
use crate::routing::asks_majority;
use crate::slow::Spent;
use ombak_runtime::{RuntimeExt, within};
use ombak_types::{Error, NodeId, StoreFailureKind};
use smallvec::SmallVec;
use std::time::{Duration, Instant};

/// How long one node has to begin a put. A put that it has provably not begun by then goes to
/// another one (docs/design/replication.md §12).
const BEGIN_MAX: Duration = Duration::from_secs(1);
/// The same limit for the last node that can be asked, if the client sets no limit of its own.
const LAST_BEGIN_MAX: Duration = Duration::from_secs(60);
/// Maximum number of nodes that are asked to coordinate one put.
const TRIES_MAX: usize = 8;

impl Kv {
    /// Executes a put on a node that has peers. Another node is asked to coordinate it only if the
    /// one before provably has not executed it and never will.
    pub(super) async fn put_in_cluster(
        &self,
        mut request: PutRequest,
        deadline: Deadline<'_>,
        costs: &mut Costs<'_>,
    ) -> Result<PutReply, Error> {
        check_room(&self.engine)?;
        match self.try_coordinators(&request, deadline, costs).await {
            Err(why) if is_without_majority(&why, &request) && self.falls_back() => {
                // The boxes keep the future of other puts small.
                Box::pin(self.check_before(&request, deadline, &mut costs.spent)).await?;
                request.options.condition = PutCondition::None;
                Box::pin(self.try_coordinators(&request, deadline, costs)).await.map_err(PutFailure::into_error)
            }
            done => done.map_err(PutFailure::into_error),
        }
    }

    async fn try_coordinators(
        &self,
        request: &PutRequest,
        deadline: Deadline<'_>,
        costs: &mut Costs<'_>,
    ) -> Result<PutReply, PutFailure> {
        let mut known_number = None;
        let mut tried: SmallVec<[NodeId; 4]> = SmallVec::new();
        let mut first_refusal = None;
        while tried.len() < TRIES_MAX {
            deadline.check().map_err(PutFailure::Refused)?;
            // Planned anew each time: the ring and what is up may have changed meanwhile.
            let placement = self.engine.request_placement();
            let next = self.engine.next_coordinator(&placement, request, &tried).map_err(PutFailure::Refused)?;
            let Some(NextCoordinator { node, is_last }) = next else { break };
            tried.push(node);
            let is_last = is_last || tried.len() == TRIES_MAX;
            let begin_by = self.begin_by(deadline, is_last);
            let done = if node == self.engine.identity.node_id {
                let begin_by = Deadline::at_time(begin_by, self.runtime()).with_pass_of(deadline);
                self.coordinate(placement, request.clone(), begin_by, deadline, costs).await.map(|done| done.reply)
            } else {
                // The other node coordinates by its own placement.
                drop(placement);
                // All nodes that are asked get the same number. A put of this node needs none.
                let number = match known_number {
                    Some(number) => number,
                    None => self.runtime().random_u64().map_err(|e| PutFailure::Refused(e.into()))?,
                };
                known_number = Some(number);
                let request = request.clone();
                let put = ForwardedPut { number, request, begin_by, deadline: deadline.at() };
                let forwarded_at = self.now();
                let done = Box::pin(self.forward(node, put, deadline)).await;
                costs.spent.forwarded_us += self.micros_since(forwarded_at);
                done
            };
            match done {
                Err(PutFailure::Refused(why)) if Refusal::of(&why) == Refusal::OfTheNode => {
                    first_refusal = first_refusal.filter(|before| !says_little(before)).or(Some(why));
                }
                done => return done,
            }
        }
        Err(PutFailure::Refused(first_refusal.filter(|why| !is_unreachable(why)).unwrap_or(Error::AllNodesDown)))
    }

    fn begin_by(&self, deadline: Deadline<'_>, is_last: bool) -> Option<Instant> {
        let limit = match deadline.at() {
            Some(at) if is_last => return Some(at),
            None if is_last => LAST_BEGIN_MAX,
            _ => BEGIN_MAX,
        };
        let at = self.now() + limit;
        Some(deadline.at().map_or(at, |end| end.min(at)))
    }

    /// Lets another node coordinate a put. After the deadline it is unknown whether that node has
    /// executed it, so no other node is asked.
    async fn forward(&self, node: NodeId, put: ForwardedPut, deadline: Deadline<'_>) -> Result<PutReply, PutFailure> {
        let forwarded = self.engine.replica_client(node).coordinate(put);
        within(self.runtime(), deadline.at(), forwarded).await.unwrap_or(Err(PutFailure::Ended(Error::Timeout)))
    }

    fn falls_back(&self) -> bool {
        self.engine.config.without_majority == WithoutMajority::ApiOnly
    }

    /// Riak's `api_only`: the condition is checked against what a read shows, before the put. Two
    /// puts with the same condition can both pass (docs/riak/semantics.md §3.2.1).
    async fn check_before(&self, request: &PutRequest, deadline: Deadline<'_>, spent: &mut Spent) -> Result<(), Error> {
        let read = GetRequest {
            bucket: request.bucket.clone(),
            key: request.key.clone().unwrap_or_default(),
            options: GetOptions { head: true, ..GetOptions::default() },
        };
        let found =
            self.engine.read_from_replicas(self.engine.request_placement(), &read, deadline.at(), spent).await?;
        let object = match &found {
            GetReply::Found(object) => Some(object),
            GetReply::NotFound { .. } => None,
        };
        request.options.condition.check(object, self.engine.now())
    }
}

/// Whether a refusal says less than why another node refused: the node was not reachable, or did
/// not begin in time.
fn says_little(refusal: &Error) -> bool {
    is_unreachable(refusal) || *refusal == Error::Timeout
}

fn is_unreachable(error: &Error) -> bool {
    matches!(error, Error::Storage(why) if why.kind == StoreFailureKind::Unreachable)
}

/// Whether a conditional put was refused because too few primaries are up.
fn is_without_majority(failure: &PutFailure, request: &PutRequest) -> bool {
    let is_refused =
        matches!(failure, PutFailure::Refused(Error::QuorumUnsatisfied { option: "pw", .. } | Error::AllNodesDown));
    is_refused && asks_majority(&request.options)
}
