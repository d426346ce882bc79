//! Runs conditional puts over several nodes: the question to the primaries before a put, and the
//! answer of this node (`crate::conditional`).

use super::engine::{Engine, storage_key};
use super::placements::RequestPlacement;
use super::replica::writes_are_fenced;
use crate::conditional::{Admission, Answered, Ballot, MajorityRead, Outcome, QueuePlace, is_expected, majority};
use crate::coordination::Replica;
use crate::coordination::put::PutPlan;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::partition::{Access, Failure};
use crate::replica::{PromiseReply, PromiseRequest, RequestReplicas};
use crate::requests::PutRequest;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_ring::RingVersion;
use ombak_ring::placement::Placement;
use ombak_runtime::{RuntimeExt, within};
use ombak_types::time::UnixMicros;
use ombak_types::{BucketProps, Error, NodeId, Object, StoreFailure, StoreFailureKind, VectorClock, stored_object};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::debug;

/// Maximum number of ballots that a put tries.
const BALLOTS_MAX: u32 = 8;
/// The longest wait before another ballot is tried, in milliseconds.
const WAIT_MS_MAX: u64 = 40;

/// What a conditional put has read, and on which its condition holds.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    /// Everything that the majority has seen.
    pub(super) clock: VectorClock,
    /// What the majority has promised.
    pub(super) ballot: Ballot,
    /// The primaries that may not accept the put.
    excluded: SmallVec<[NodeId; 3]>,
    /// Number of positions whose owners must accept it.
    majority: u32,
}

impl Expectation {
    /// Lets only full primaries accept the put, and asks for a majority of them.
    pub(super) fn weigh(&self, replicas: &mut RequestReplicas, plan: &mut PutPlan) {
        for replica in replicas.list.iter_mut().filter(|replica| self.excluded.contains(&replica.node)) {
            (replica.primaries, replica.other.primaries) = (0, 0);
        }
        plan.pw = plan.pw.max(self.majority);
    }

    /// The time that the value gets.
    pub(super) fn stamp(&self, now: UnixMicros) -> UnixMicros {
        if is_broken(BrokenRule::BallotsDateValues) { now } else { self.ballot.stamp }
    }

    /// Whether the copy of the coordinator is still what the put has seen, and older than the put.
    pub(super) fn holds_for(&self, local: Option<&Object>, now: UnixMicros) -> bool {
        let is_older = local.and_then(Object::last_modified).is_none_or(|newest| newest < self.ballot.stamp);
        is_older && is_expected(local, &self.clock, None, now)
    }
}

/// What became of one question to the primaries.
enum Asked {
    /// The primaries have answered.
    Told(MajorityRead, Outcome),
    /// A primary knows a newer placement.
    Outdated { by: NodeId, known: RingVersion },
}

/// The refusal of a put whose ballot was outbid before it has stored anything.
pub(super) fn outbid() -> Error {
    StoreFailure::new(StoreFailureKind::Busy, "other conditional puts of the key are under way").into()
}

impl Engine {
    /// Waits until this node coordinates no other conditional put of the key.
    pub(crate) async fn enter_queue(&self, request: &PutRequest) -> QueuePlace<'_> {
        let key = request.key.as_deref().unwrap_or_default();
        self.conditional.queue.enter(storage_key(&request.bucket, key).into()).await
    }

    /// Reads a majority of the primaries for a conditional put that this node coordinates, and
    /// checks the condition. If a primary knows a newer placement, the put begins anew with it.
    pub(crate) async fn read_majority(
        self: &Arc<Self>,
        placement: &mut RequestPlacement,
        request: &PutRequest,
        deadline: Option<Instant>,
    ) -> Result<Expectation, Error> {
        let runtime = &self.config.runtime;
        let props = self.buckets.props(&request.bucket)?;
        let mut later_than = UnixMicros(0);
        for tried in 0..BALLOTS_MAX {
            let stamp = self.now().max(UnixMicros(later_than.0.saturating_add(1)));
            let ballot = Ballot { stamp, number: runtime.random_u64()? };
            let (read, outcome) = match self.ask_primaries(placement, request, &props, ballot, deadline).await? {
                Asked::Told(read, outcome) => (read, outcome),
                Asked::Outdated { by, known } => {
                    let learned = self.learn_placement(by, known);
                    within(&**runtime, deadline, learned).await.map_err(|_| Error::Timeout)?;
                    *placement = self.request_placement();
                    continue;
                }
            };
            match outcome {
                Outcome::Promised => {
                    self.check_condition(request, &props, &read.seen)?;
                    let MajorityRead { ballot, seen, excluded, .. } = read;
                    return Ok(Expectation { clock: seen.clock, ballot, excluded, majority: majority(props.n_val) });
                }
                Outcome::Outbid(by) => later_than = later_than.max(by),
                Outcome::Open | Outcome::TooFew { .. } => {
                    let got = if let Outcome::TooFew { got } = outcome { got } else { 0 };
                    return Err(Error::QuorumUnsatisfied { option: "pw", need: majority(props.n_val), got });
                }
            }
            if tried > 0 {
                // Several coordinators may compete. One of them waits less.
                let wait = Duration::from_millis(runtime.random_u64()? % WAIT_MS_MAX);
                within(&**runtime, deadline, runtime.sleep(wait)).await.map_err(|_| Error::Timeout)?;
            }
        }
        Err(outbid())
    }

    /// Asks the primaries that are up, until a majority has promised or cannot.
    async fn ask_primaries(
        self: &Arc<Self>,
        placement: &Placement,
        request: &PutRequest,
        props: &BucketProps,
        ballot: Ballot,
        deadline: Option<Instant>,
    ) -> Result<Asked, Error> {
        let key = request.key.as_deref().unwrap_or_default();
        let (n, partition) = (props.n_val, self.home_of(placement, &request.bucket, key, props));
        let key = storage_key(&request.bucket, key).into();
        let question = PromiseRequest { partition, n, ring: placement.version(), key, ballot, deadline };
        let owners = RequestReplicas::of_put(self.viewer(), placement.home(partition), n, false);
        let mut pending: FuturesUnordered<_> = owners
            .list
            .iter()
            .map(|owner| {
                let answer = self.conditional_client(owner.node).promise(question.clone());
                async move { (*owner, answer.await) }
            })
            .collect();
        let mut read = MajorityRead::new(ballot, n, &owners.list, owners.sets);
        let mut outcome = Outcome::TooFew { got: 0 };
        while let Some((owner, answer)) =
            within(&*self.config.runtime, deadline, pending.next()).await.map_err(|_| Error::Timeout)?
        {
            let outdated = answer.as_ref().ok().and_then(|reply| reply.outdated);
            if let Some(known) = outdated.filter(|known| *known > question.ring) {
                return Ok(Asked::Outdated { by: owner.node, known });
            }
            outcome = read.on_answer(owner, self.note_promise(owner, answer));
            if outcome != Outcome::Open {
                break;
            }
        }
        Ok(Asked::Told(read, outcome))
    }

    /// The answer of a primary; `None` if it has failed.
    fn note_promise(&self, owner: Replica, answer: Result<PromiseReply, Error>) -> Option<Answered> {
        let answered = answer.and_then(|PromiseReply { version, full, outdated, outbid, counter }| {
            self.reaping.counters.note(owner.node, counter);
            let head = version.map(|stored| stored_object::decode(&stored.head, None)).transpose()?;
            Ok(Answered { head, full: full && outdated.is_none(), outbid })
        });
        answered.inspect_err(|why| debug!(node = %owner.node, %why, "a conditional put goes on without a primary")).ok()
    }

    /// Checks the condition against what a reader would see.
    fn check_condition(&self, request: &PutRequest, props: &BucketProps, seen: &Object) -> Result<(), Error> {
        let mut seen = seen.clone();
        if props.is_newest_only() {
            if self.prefers_live(props) && !seen.is_deleted() {
                seen.siblings.retain(|sibling| !sibling.meta.deleted);
            }
            seen.keep_newest();
        }
        let found = Some(&seen).filter(|seen| !seen.siblings.is_empty());
        request.options.condition.check(found, self.now())
    }

    /// Answers a question before a conditional put: what this node holds, and whether it promises
    /// the ballot.
    pub(crate) fn promise_here(&self, request: &PromiseRequest, access: Access) -> Result<PromiseReply, Failure> {
        // The counter is taken before the copy is read, as for every read.
        let counter = self.reaping.fences.counter();
        let PromiseRequest { partition: home, n, ring, key, ballot, deadline: _ } = request;
        let partition = self.partitions.find(*home).map_err(Error::from)?;
        // A copy that is stored between the promise and the read would be seen by neither.
        let locked = partition.lock(key, access)?;
        let version = partition.read_head(key, access)?;
        let full = self.may_accept(*home, *n, *ring);
        let outdated = self.outdated(*home, *ring).filter(|_| writes_are_fenced());
        let newest = locked.local().and_then(Object::last_modified).max(Some(self.reaping.floors.of(*home)));
        let outbid = newest.filter(|&newest| newest >= ballot.stamp);
        let outbid = outbid.map_or_else(|| self.admit(*home, key, *ballot, access), |newest| Ok(Some(newest)))?;
        Ok(PromiseReply { version, full, outdated, outbid, counter })
    }

    /// Promises a ballot, or accepts a value with it. Returns the time that stands against it.
    /// Called under the key's lock.
    pub(super) fn admit(
        &self,
        home: u32,
        key: &[u8],
        ballot: Ballot,
        access: Access,
    ) -> Result<Option<UnixMicros>, Failure> {
        loop {
            match self.conditional.ballots.admit(home, key, ballot) {
                Admission::Admitted => return Ok(None),
                Admission::Outbid(by) => return Ok(Some(by)),
                Admission::NeedsDisk if access == Access::Inline => return Err(Failure::WouldBlock),
                Admission::NeedsDisk => {
                    self.conditional.ballots.make_room(ballot).map_err(|why| {
                        // Nothing was promised or stored, so another node may do it.
                        let text = format!("what is promised to conditional puts cannot be saved: {why}");
                        Error::from(StoreFailure::new(StoreFailureKind::Busy, text))
                    })?;
                }
            }
        }
    }
}
