//! A client that changes data types through random nodes.

use super::TypedRun;
use super::expected::{COUNTER_FIELD, SET_FIELD, parts_of};
use super::key::{TypedKey, TypedKind};
use crate::random::Random;
use crate::world::{HostId, OUTSIDE};
use bytes::Bytes;
use ombak_crdt::{Change, Clock, Field, FieldOp, FieldType, MapOp, Request, SetOp, State};
use ombak_datatypes::typed_put;
use ombak_kv::{DeleteRequest, GetOptions, Kv, PutOptions};
use ombak_runtime::{BoxFuture, RuntimeExt};
use ombak_types::props::SyncOnWrite;
use ombak_types::{Error, Quorum};
use std::time::Duration;

/// The pause between two operations of a client in milliseconds, at most.
const PAUSE_MS_MAX: u64 = 200;
/// The time limits that a client gives its changes.
const REQUEST_LIMITS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(2), Duration::from_millis(300)];
const AMOUNT_MAX: u64 = 9;
/// How many of the removals from a set delete all of it.
const DELETIONS_PERCENT: u64 = 30;

pub(super) struct TypedClient {
    run: TypedRun,
    number: usize,
    random: Random,
    added: u64,
}

impl TypedClient {
    pub(super) fn new(run: &TypedRun, number: usize) -> Self {
        Self { run: run.clone(), number, random: run.clients.world.fork_random(), added: 0 }
    }

    pub(super) async fn run(mut self, operations: u64) {
        let runtime = self.run.clients.world.runtime(OUTSIDE);
        let keys: Vec<TypedKey> = TypedKey::all().collect();
        for _ in 0..operations {
            runtime.sleep(Duration::from_millis(self.random.within(0..PAUSE_MS_MAX))).await;
            let hosts = self.run.clients.cluster.lock().hosts();
            let (key, host) = (*self.random.pick(&keys), *self.random.pick(&hosts));
            match (key.kind, self.random.within(0..10)) {
                (TypedKind::Counter, _) | (TypedKind::Map, 0..3) => self.count(host, key).await,
                (_, 0..7) => self.add(host, key).await,
                _ if key.is_deleted_at_times() && self.random.chance(DELETIONS_PERCENT) => self.delete(host, key).await,
                _ => self.remove(host, key).await,
            }
        }
    }

    async fn count(&mut self, host: HostId, key: TypedKey) {
        let amount = self.random.within(1..AMOUNT_MAX) as i64 * if self.random.chance(25) { -1 } else { 1 };
        let request = match key.kind {
            TypedKind::Map => update(COUNTER_FIELD, FieldType::Counter, FieldOp::Counter(amount)),
            TypedKind::Counter | TypedKind::Set => Request::Counter(amount),
        };
        let is_acknowledged = self.change(host, key, request, None).await;
        self.run.expected.lock().counted(key, amount, is_acknowledged);
    }

    /// Adds a member that nobody has added: half of those of a map are fields of their own.
    async fn add(&mut self, host: HostId, key: TypedKey) {
        let in_set = key.kind == TypedKind::Set || self.random.chance(50);
        self.added += 1;
        let padding = self.run.padding;
        let member = Bytes::from(format!("{}{}-{}{padding}", if in_set { "m" } else { "f" }, self.number, self.added));
        let adds = vec![SetOp::Add(member.clone())];
        let request = match key.kind {
            TypedKind::Map if in_set => update(SET_FIELD, FieldType::Set, FieldOp::Set(adds)),
            TypedKind::Map => {
                let op = FieldOp::Register { value: member.clone(), time_us: self.added };
                Request::Map(vec![MapOp::Update(Field::new(member.clone(), FieldType::Register), op)])
            }
            TypedKind::Set | TypedKind::Counter => Request::Set(adds),
        };
        self.run.expected.lock().adds(key, &member);
        let is_acknowledged = self.change(host, key, request, None).await;
        self.run.expected.lock().added(key, &member, is_acknowledged);
    }

    /// Reads the value, and removes one of the members that it shows.
    async fn remove(&mut self, host: HostId, key: TypedKey) {
        let r = *self.random.pick(&[Quorum::One, Quorum::Majority]);
        let Ok(Some(state)) = self.run.read(host, key, r).await else { return };
        let (_, members) = parts_of(&state);
        if members.is_empty() {
            return;
        }
        let member = self.random.pick(&members).clone();
        let removes = vec![SetOp::Remove(member.clone())];
        let (request, context): (Request, Clock) = match &state {
            State::Set(set) => (Request::Set(removes), set.context().clone()),
            State::Map(map) if member.starts_with(b"m") => {
                (update(SET_FIELD, FieldType::Set, FieldOp::Set(removes)), map.context().clone())
            }
            State::Map(map) => {
                let field = Field::new(member.clone(), FieldType::Register);
                (Request::Map(vec![MapOp::Remove(field)]), map.context().clone())
            }
            _ => return,
        };
        self.run.expected.lock().removes(key, &member);
        let hosts = self.run.clients.cluster.lock().hosts();
        let through = *self.random.pick(&hosts);
        let is_acknowledged = self.change(through, key, request, Some(context)).await;
        self.run.expected.lock().removed(key, &member, is_acknowledged);
    }

    /// Reads a set, and deletes what it shows. What others add meanwhile stays.
    async fn delete(&mut self, host: HostId, key: TypedKey) {
        let r = *self.random.pick(&[Quorum::One, Quorum::Majority]);
        let Ok(Some((state, clock))) = self.run.read_with_clock(host, key, r).await else { return };
        let (_, members) = parts_of(&state);
        self.run.expected.lock().deletes(key, &members);
        let request = DeleteRequest {
            bucket: key.kind.bucket(),
            key: key.bytes(),
            clock: Some(clock),
            get: GetOptions::default(),
            put: self.options(),
            rw: None,
        };
        let work = |kv: Kv| -> BoxFuture<'static, Result<(), Error>> {
            Box::pin(async move { kv.delete(request).await.map(drop) })
        };
        let hosts = self.run.clients.cluster.lock().hosts();
        let through = *self.random.pick(&hosts);
        let is_acknowledged = matches!(self.run.clients.call(through, work).await, Some(Ok(())));
        self.run.expected.lock().deleted(is_acknowledged);
    }

    /// What an acknowledgement promises: two nodes have the change on their disks.
    fn options(&mut self) -> PutOptions {
        PutOptions {
            w: Some(*self.random.pick(&[Quorum::Majority, Quorum::Majority, Quorum::All])),
            sync_on_write: Some(SyncOnWrite::All),
            // One node counts for each position in which it stands in, so w alone promises no two
            // disks (docs/design/replication.md §14).
            node_confirms: Some(Quorum::Count(2)),
            timeout: Some(*self.random.pick(&REQUEST_LIMITS)),
            ..PutOptions::default()
        }
    }

    /// Whether a change was acknowledged.
    async fn change(&mut self, host: HostId, key: TypedKey, request: Request, context: Option<Clock>) -> bool {
        let options = self.options();
        let change = Change::Request { request, context };
        let put = typed_put(key.kind.bucket(), Some(key.bytes()), &change, options);
        let work = |kv: Kv| -> BoxFuture<'static, Result<(), Error>> {
            Box::pin(async move { kv.put(put).await.map(|_| ()) })
        };
        matches!(self.run.clients.call(host, work).await, Some(Ok(())))
    }
}

/// A change of one field of a map.
fn update(name: &'static str, kind: FieldType, op: FieldOp) -> Request {
    Request::Map(vec![MapOp::Update(Field::new(name, kind), op)])
}
