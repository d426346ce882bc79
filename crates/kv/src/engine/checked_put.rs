//! What is settled about a write before its write call: which nodes it goes to, how many must store
//! it, and what is stored.
//!
//! A put to a bucket that has a kind of its own is told apart here ([`Engine::check_put`]).
//! [`Route::of`] chooses the coordinator by the properties of the bucket. After that the hooks of
//! the node say which [`ValueKind`] serves the bucket. Such a put becomes an operation on the
//! stored value, which `Locked` applies under the key's lock.

use super::conditional::Expectation;
use super::engine::Engine;
use crate::coordination::put::{PutActions, PutCore, PutPlan};
use crate::coordination::{effective_n, expiry};
use crate::hooks::{ValueKind, unknown};
use crate::partition::Partition;
use crate::replica::RequestReplicas;
use crate::requests::PutRequest;
use crate::routing::{Route, WriteKind};
use bytes::Bytes;
use ombak_ring::placement::Placement;
use ombak_types::error::PrecommitReason;
use ombak_types::props::Hook;
use ombak_types::time::UnixMicros;
use ombak_types::{BucketProps, Error, StoreFailure, StoreFailureKind};
use smallvec::SmallVec;
use std::sync::Arc;

/// A write that nothing speaks against. Nothing was stored yet.
pub(super) struct CheckedPut<'a> {
    pub(super) props: &'a BucketProps,
    /// The kind of the value that the put is an operation on; `None` for a plain put.
    pub(super) values: Option<&'a dyn ValueKind>,
    /// The operation that the put of a value is, if it is not one itself.
    pub(super) operation: Option<Bytes>,
    /// The kind that the request asks for.
    pub(super) asked_kind: WriteKind,
    /// The kind that is executed.
    pub(super) kind: WriteKind,
    /// The time at which the write was checked.
    pub(super) now: UnixMicros,
    pub(super) nodes: PutNodes,
    pub(super) partition: Arc<Partition>,
    /// The storage key.
    pub(super) key: Vec<u8>,
    pub(super) core: PutCore,
    /// What the coordinator has asked for so far.
    pub(super) asked: PutActions,
}

/// The kind of the value that a put is an operation on, and the operation if the put has a value.
type PutOperation<'a> = (Option<&'a dyn ValueKind>, Option<Bytes>);

/// The nodes that a write goes to.
pub(super) struct PutNodes {
    /// The home partition.
    pub(super) home: u32,
    /// Number of positions.
    pub(super) n: u32,
    pub(super) replicas: RequestReplicas,
    /// The index of this node among the replicas.
    pub(super) local: usize,
    /// The replicas that get nothing from this node before it has synced the version.
    pub(super) withheld_from: SmallVec<[usize; 3]>,
}

impl Engine {
    /// Checks a write of `key`, and lets the hooks of the node see it. `expectation` is what a
    /// conditional put has read on several nodes.
    pub(super) fn check_put<'a>(
        &'a self,
        placement: &Placement,
        props: &'a BucketProps,
        key: &[u8],
        request: &mut PutRequest,
        expectation: Option<&Expectation>,
    ) -> Result<CheckedPut<'a>, Error> {
        let route = Route::of(props)?;
        let (mut nodes, mut plan) = self.nodes_of_put(placement, props, key, request, expectation.is_some())?;
        if self.config.hooks.commit.is_none() {
            refuse_precommit(props)?;
        }
        for filter in &self.config.hooks.filters {
            filter.before_put(&request.bucket, key, props, &mut request.object)?;
        }
        let (values, operation) = self.operation(props, request)?;
        let asked_kind = if values.is_some() { WriteKind::Coordinated } else { WriteKind::of(route, request)? };
        // Copies without a clock cannot tell which of two puts has seen the other.
        let is_conditional_write_once = expectation.is_some() && asked_kind == WriteKind::WriteOnce;
        let kind = if is_conditional_write_once { WriteKind::Coordinated } else { asked_kind };
        let now = self.now();
        expiry::stamp(&mut request.object, props.ttl, kind == WriteKind::AsIs, now)?;
        plan.coordinator = (kind == WriteKind::Coordinated).then_some(nodes.local);
        if let Some(expectation) = expectation {
            expectation.weigh(&mut nodes.replicas, &mut plan);
        }
        let (partition, key) = self.locate(&request.bucket, key, nodes.home)?;
        let (core, asked) = PutCore::start(plan, &nodes.replicas.list);
        Ok(CheckedPut { props, values, operation, asked_kind, kind, now, nodes, partition, key, core, asked })
    }

    /// The kind of the value that a put is an operation on, and the operation that it is if it is a
    /// plain put. `None` for a put that replaces values.
    fn operation<'a>(&'a self, props: &BucketProps, request: &PutRequest) -> Result<PutOperation<'a>, Error> {
        let hooks = &self.config.hooks;
        if let Some(number) = request.options.operation {
            let kind = hooks.numbered(number).ok_or_else(|| unknown(number))?;
            hooks.check_kind_gate()?;
            return Ok((Some(&**kind), None));
        }
        let Some(kind) = hooks.kind_of(props) else { return Ok((None, None)) };
        let value = request.object.siblings.first().filter(|value| !value.meta.deleted);
        let operation = value.and_then(|value| kind.operation_of(props, value));
        // A plain value stays plain while nodes could not read another form of it.
        Ok(if operation.is_some() && hooks.check_kind_gate().is_ok() {
            (Some(&**kind), operation)
        } else {
            (None, None)
        })
    }

    /// The nodes of a write, and how many of them must store it.
    fn nodes_of_put(
        &self,
        placement: &Placement,
        props: &BucketProps,
        key: &[u8],
        request: &PutRequest,
        is_conditional: bool,
    ) -> Result<(PutNodes, PutPlan), Error> {
        let n = effective_n(request.options.n_val, props)?;
        // The majority that a conditional put needs is one of the bucket's n positions.
        let n = if is_conditional { props.n_val } else { n };
        let home = self.home_of(placement, &request.bucket, key, props);
        let sloppy = request.options.sloppy_quorum;
        let replicas = RequestReplicas::of_put(self.viewer(), placement.home(home), n, sloppy);
        let plan = PutPlan::new(&request.options, props, n, &replicas.list, replicas.sets)?;
        let local = replicas.local.ok_or_else(no_position)?;
        // A stand-in syncs what it wrote before it sends it to another one
        // (docs/design/replication.md §6).
        let is_stand_in = |at: usize| !replicas.list[at].is_owner();
        let stand_ins = (0..replicas.list.len()).filter(|&at| is_stand_in(local) && at != local && is_stand_in(at));
        let withheld_from = stand_ins.collect();
        Ok((PutNodes { home, n, replicas, local, withheld_from }, plan))
    }
}

/// The refusal of a put that reached a node without a position for its key, because the nodes do
/// not agree on which of them are up. Nothing was executed.
fn no_position() -> Error {
    StoreFailure::new(StoreFailureKind::Unreachable, "this node has no position for the key").into()
}

/// On a node that runs no hooks, a write without a hook that an operator relies on would be wrong.
/// Such a write is therefore refused, as Riak refuses a write whose hook crashes.
fn refuse_precommit(props: &BucketProps) -> Result<(), Error> {
    let hook = match props.precommit.first() {
        None => return Ok(()),
        Some(Hook::ModFun { module, function }) => format!("{module},{function}"),
        Some(Hook::Named(name)) => name.clone(),
    };
    Err(Error::PrecommitFail(Some(PrecommitReason::HookMissing(hook))))
}
