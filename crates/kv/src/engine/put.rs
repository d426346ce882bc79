//! Executes a write: on this node first, then over the replicas of other nodes.

use super::engine::{Engine, check_bucket, check_key, refuse_consistent};
use super::put_run::{PutRun, Version, check_room};
use super::stored_form::StoredForm;
use crate::coordination::put::{PutAction, PutActions, PutCore, PutEvent, PutPlan};
use crate::coordination::{effective_n, expiry};
use crate::interface::{PutOptions, PutReply, PutRequest};
use crate::partition::Deadline;
use crate::partition::{Access, Failure, Partition, WriteRules, Written, is_tombstone};
use crate::replica::{RequestReplicas, StoreKind};
use bytes::Bytes;
use ombak_ring::Ring;
use ombak_runtime::within;
use ombak_types::error::PrecommitReason;
use ombak_types::props::{Hook, SyncOnWrite};
use ombak_types::time::UnixMicros;
use ombak_types::{BucketProps, Error, NodeId, Object, StoreFailure, StoreFailureKind, VectorClock};
use std::sync::Arc;
use std::time::Instant;

/// A write whose write call on this node has returned.
pub(crate) struct PutProgress {
    core: PutCore,
    /// What the coordinator has asked for so far.
    asked: PutActions,
    kind: WriteKind,
    pub(crate) partition: Arc<Partition>,
    /// The storage key.
    key: Vec<u8>,
    /// The digest of the version that the key now holds, and the total length of its values.
    digest: u64,
    value_bytes: u64,
    /// The append that must be durable before the write counts.
    pub(crate) sync_to: Option<u64>,
    /// The result of the wait for that sync.
    pub(crate) synced: Result<(), Error>,
    /// Number of hooks that the bucket names for the time after the write.
    postcommit_hooks: usize,
    reply: Option<Object>,
    /// The index of this node among the replicas.
    local: usize,
    /// The other replicas, and the version for them; `None` when there are none.
    others: Option<(RequestReplicas, Version)>,
}

impl PutProgress {
    /// The reply, now that it is known whether this node's copy counts. Waits for other replicas,
    /// until the deadline.
    pub(crate) async fn finish(self, engine: &Arc<Engine>, deadline: Option<Instant>) -> Result<PutReply, Error> {
        let replica = self.local;
        let event = match self.synced {
            Ok(()) => PutEvent::Stored { replica },
            Err(Error::Timeout) => PutEvent::Timeout,
            Err(error) => PutEvent::Failed { replica, error },
        };
        match self.others {
            None => only_reply(self.core, event)?,
            Some((replicas, version)) => {
                let is_elsewhere = |action: &PutAction| *action != PutAction::Store { replica };
                let first = self.asked.into_iter().filter(is_elsewhere).collect();
                let reply = PutRun::start(engine, self.core, &replicas, version, first, event);
                let said = within(&*engine.config.runtime, deadline, reply).await.map_err(|_| Error::Timeout)?;
                said.unwrap_or(Err(Error::Timeout))?;
            }
        }
        Ok(PutReply { key: None, object: self.reply })
    }

    /// Number of hooks that the bucket names for the time after the write. They are Erlang
    /// functions, so Ombak runs none of them.
    pub(crate) const fn postcommit_hooks(&self) -> usize {
        self.postcommit_hooks
    }

    /// The storage key and the digest, if the key now holds only a tombstone.
    pub(crate) fn tombstone(&self) -> Option<(Vec<u8>, u64)> {
        is_tombstone(self.digest).then(|| (self.key.clone(), self.digest))
    }

    pub(crate) fn is_write_once(&self) -> bool {
        self.kind == WriteKind::WriteOnce
    }

    pub(crate) fn value_bytes(&self) -> u64 {
        self.value_bytes
    }
}

/// The reply of a coordinator whose only replica is this node.
fn only_reply(mut core: PutCore, event: PutEvent) -> Result<(), Error> {
    let said = core.on(event).into_iter().find_map(|action| match action {
        PutAction::Reply(said) => Some(said),
        _ => None,
    });
    said.unwrap_or(Err(Error::Timeout))
}

impl Engine {
    /// The node that coordinates a put, if this node has no position for its key.
    pub(crate) fn coordinator_elsewhere(&self, ring: &Ring, request: &PutRequest) -> Result<Option<NodeId>, Error> {
        if self.is_alone(ring) {
            return Ok(None);
        }
        check_room(self)?;
        check_bucket(&request.bucket)?;
        let key = request.key.as_deref().unwrap_or_default();
        check_key(key)?;
        let buckets = self.buckets.snapshot();
        let props = buckets.props(&request.bucket)?;
        let n = effective_n(request.options.n_val, props)?;
        let home = self.home_of(ring, &request.bucket, key, props);
        let replicas = self.replicas(ring, home, n, request.options.sloppy_quorum);
        match (replicas.local, replicas.list.first()) {
            (Some(_), _) => Ok(None),
            (None, Some(first)) => Ok(Some(first.node)),
            (None, None) => Err(Error::AllNodesDown),
        }
    }

    /// Executes one write, up to the write call on this node. The object is moved out of the request only when
    /// nothing can block any more, so that a request that would have blocked can be executed again.
    /// Past its deadline the write fails and changes nothing.
    pub(crate) fn execute_put(
        &self,
        ring: &Ring,
        request: &mut PutRequest,
        access: Access,
        deadline: Deadline<'_>,
    ) -> Result<PutProgress, Failure> {
        let key = request.key.clone().unwrap_or_default();
        check_bucket(&request.bucket)?;
        check_key(&key)?;
        let buckets = self.buckets.snapshot();
        let props = buckets.props(&request.bucket)?;
        refuse_consistent(props)?;
        let n = effective_n(request.options.n_val, props)?;
        let home = self.home_of(ring, &request.bucket, &key, props);
        let replicas = self.replicas(ring, home, n, request.options.sloppy_quorum);
        let plan = PutPlan::new(&request.options, props, n, &replicas.list)?;
        let local = replicas.local.ok_or_else(no_position)?;
        // Old copies must not pass between fallbacks (docs/design/replication.md §6).
        let is_fallback = |at: usize| replicas.list[at].primaries == 0;
        let feeds_fallback = is_fallback(local) && (0..replicas.list.len()).any(|at| at != local && is_fallback(at));
        run_precommit(props)?;
        let kind = WriteKind::of(request, props)?;
        let now = self.now();
        expiry::stamp(&mut request.object, props.ttl, kind == WriteKind::AsIs, now)?;
        let plan = PutPlan { coordinator: (kind == WriteKind::Coordinated).then_some(local), ..plan };
        let (partition, storage_key) = self.locate(&request.bucket, &key, home)?;
        let (core, asked) = PutCore::start(plan, &replicas.list);
        let rules = WriteRules { props, limits: &self.config.limits, now, deadline: Some(deadline) };
        let written = self.write(&partition, &storage_key, request, kind, &rules, access)?;
        let wants_sync = feeds_fallback || wants_sync(&request.options, props, &partition);
        let sync_to = wants_sync.then_some(written.seq);
        let reply = reply(&request.options, kind, &written, now);
        let (digest, value_bytes) = (written.digest, written.object.value_bytes());
        let others = (replicas.list.len() > 1).then(|| {
            let version = Version {
                partition: home,
                key: Bytes::copy_from_slice(&storage_key),
                form: StoredForm::of(&written.object),
                kind: StoreKind { dvv: props.dvv_enabled },
                synced: request.options.sync_on_write.unwrap_or(props.sync_on_write) == SyncOnWrite::All,
            };
            (replicas, version)
        });
        Ok(PutProgress {
            core,
            asked,
            kind,
            partition,
            key: storage_key,
            digest,
            value_bytes,
            sync_to,
            synced: Ok(()),
            postcommit_hooks: props.postcommit.len(),
            reply,
            local,
            others,
        })
    }

    fn write(
        &self,
        partition: &Partition,
        key: &[u8],
        request: &mut PutRequest,
        kind: WriteKind,
        rules: &WriteRules<'_>,
        access: Access,
    ) -> Result<Written, Failure> {
        let mut locked = partition.lock(key, access)?;
        locked.check(&request.options.condition, rules.now)?;
        let newest_only = kind == WriteKind::Coordinated && rules.newest_only();
        locked.load_for(&request.object.clock, newest_only)?;
        match kind {
            WriteKind::Coordinated => locked.coordinate(std::mem::take(&mut request.object), &self.vtags.next(), rules),
            // The key holds a tombstone, or a value that was written under other rules: the new
            // value needs a clock to replace it. It replaces an expired value, too.
            WriteKind::WriteOnce if locked.local().is_some_and(|l| !l.clock.is_empty()) => {
                let mut object = std::mem::take(&mut request.object);
                if let Some(absent) = locked.local().filter(|l| l.is_absent(rules.now)) {
                    object.clock.merge(&absent.clock);
                }
                locked.coordinate(object, &self.vtags.next(), rules)
            }
            WriteKind::WriteOnce | WriteKind::AsIs => {
                let mut object = request.object.clone();
                if kind == WriteKind::WriteOnce {
                    object.clock = VectorClock::new();
                }
                for meta in object.siblings.iter_mut().map(|s| &mut s.meta) {
                    meta.vtag.get_or_insert_with(|| Bytes::copy_from_slice(&self.vtags.next()));
                    meta.last_modified.get_or_insert(rules.now);
                }
                locked.merge(object, &rules.merging())
            }
        }
    }
}

/// How a write treats the clock that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteKind {
    /// The write is a new event.
    Coordinated,
    /// The object is stored without a clock (docs/riak/semantics.md §3.3).
    WriteOnce,
    /// The object is merged with the clock that it carries.
    AsIs,
}

impl WriteKind {
    fn of(request: &PutRequest, props: &BucketProps) -> Result<Self, Error> {
        if request.object.siblings.is_empty() {
            return Err(Error::Unsupported("a write needs a value; use delete to remove a key".into()));
        }
        Ok(match () {
            () if request.options.asis => Self::AsIs,
            // A tombstone must replace the value, so it needs a clock.
            () if props.write_once && !request.object.is_deleted() => Self::WriteOnce,
            () => Self::Coordinated,
        })
    }
}

/// The refusal of a put that reached a node without a position for its key, because the nodes do not
/// agree on which of them are up. Nothing was executed.
fn no_position() -> Error {
    StoreFailure::new(StoreFailureKind::Unreachable, "this node has no position for the key").into()
}

/// Hooks are Erlang or JavaScript functions and cannot run here. A write without a hook that an
/// operator relies on would be wrong. Such a write is therefore refused, as Riak refuses a write
/// whose hook crashes.
fn run_precommit(props: &BucketProps) -> Result<(), Error> {
    let hook = match props.precommit.first() {
        None => return Ok(()),
        Some(Hook::ModFun { module, function }) => format!("{module},{function}"),
        Some(Hook::Named(name)) => name.clone(),
    };
    Err(Error::PrecommitFail(Some(PrecommitReason::HookMissing(hook))))
}

fn wants_sync(options: &PutOptions, props: &BucketProps, partition: &Partition) -> bool {
    match options.sync_on_write.unwrap_or(props.sync_on_write) {
        SyncOnWrite::Backend => partition.store().sync_each_write(),
        SyncOnWrite::One | SyncOnWrite::All => true,
    }
}

/// The part of the stored object that the client asked for.
fn reply(options: &PutOptions, kind: WriteKind, written: &Written, now: UnixMicros) -> Option<Object> {
    if kind == WriteKind::WriteOnce || !(options.return_body || options.return_head) {
        return None;
    }
    let mut object = written.object.clone();
    expiry::show(&mut object, now);
    if !options.return_body {
        object.siblings.iter_mut().for_each(|s| s.value.clear());
    }
    Some(object)
}
