//! The interface of the engine: reads, writes and deletes of one key.

use super::costs::Costs;
use crate::config::KvConfig;
use crate::coordination::Refusal;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::engine::{Engine, Expectation, Kv, LeasedMemory, PutProgress, RequestPlacement, check_bucket, check_room};
use crate::names::key_text;
use crate::open_error::OpenError;
use crate::partition::{Access, BeginOrGiveUp, Deadline, Failure, Partition, WritePass};
use crate::replica::{ForwardedPut, PutFailure};
use crate::requests::{
    DeleteReply, DeleteRequest, GetReply, GetRequest, MemoryReservation, PutReply, PutRequest,
    READ_WITHOUT_RESERVATION_BYTES_MAX, Read, UncountedMemory, bucket_prefix,
};
use crate::routing::asks_majority;
use crate::slow::{JobTimes, RequestKind, SlowRequest, Spent, micros_between};
use bytes::Bytes;
use ombak_runtime::{Pool, PoolError, Runtime, within};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, Object, Sibling};
use std::fmt::Display;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest value of a put, in bytes, that is written on the thread that received the request:
/// copying and checking a larger value takes too long there.
const INLINE_VALUE_BYTES_MAX: u64 = 256 << 10;
/// Largest number of links, metadata pairs and index entries of such a put: each takes some hundred
/// nanoseconds.
const INLINE_PARTS_MAX: usize = 1_000;
/// How long a write waits for the end of a change of the cluster before it is refused.
const CLOSED_WAIT_MAX: Duration = Duration::from_secs(2);

/// A write that this node has coordinated.
pub(super) struct Coordinated {
    pub(super) reply: PutReply,
    partition: Arc<Partition>,
    /// The storage key and the digest, if the key now holds only a tombstone.
    tombstone: Option<(Vec<u8>, u64)>,
}

/// The result of one attempt to execute a write on another thread.
enum Attempt {
    Ended(Result<PutProgress, Failure>),
    /// The key holds a version of `bytes` bytes. The caller must reserve memory for it before it
    /// tries the request again.
    NeedsRoom {
        request: PutRequest,
        bytes: u64,
    },
}

impl Kv {
    /// Opens the node's files and stores. Blocks: not for network threads.
    pub fn open(config: KvConfig) -> Result<Self, OpenError> {
        config.hooks.check_consumers()?;
        Ok(Self { engine: Arc::new(Engine::open(config)?) })
    }

    /// Reads one key.
    pub async fn get(&self, request: GetRequest) -> Result<GetReply, Error> {
        self.read(&request).await?.into_reply()
    }

    /// Reads one key for a caller that can pass on the stored bytes.
    pub async fn read(&self, request: &GetRequest) -> Result<Read, Error> {
        self.read_into(request, &mut UncountedMemory).await
    }

    /// Reads one key for a caller whose memory is limited: a large version is read only after
    /// memory for it was reserved.
    pub async fn read_into(&self, request: &GetRequest, room: &mut dyn MemoryReservation) -> Result<Read, Error> {
        self.read_at_costs(request, &mut Costs::of_request(room)).await
    }

    async fn read_at_costs(&self, request: &GetRequest, costs: &mut Costs<'_>) -> Result<Read, Error> {
        let (stats, began) = (&self.engine.stats, self.now());
        let _pass = self.engine.enter().inspect_err(|_| {
            stats.node_get_rejected();
            costs.is_refused = true;
        })?;
        let _active = stats.node_get_active();
        let placement = self.engine.request_placement();
        let is_alone = self.engine.is_alone_in(&placement);
        let read = if is_alone {
            match self.engine.execute_read(&placement, request, Access::Inline) {
                Ok(read) => Ok(read),
                Err(Failure::Refused(error)) => Err(error),
                Err(Failure::WouldBlock | Failure::TooLarge(_)) => {
                    // The box keeps the future of a read that does not wait small.
                    Box::pin(self.read_blocking(placement, request, costs)).await
                }
            }
        } else {
            let deadline = self.deadline(began, request.options.timeout).at();
            let placement = if self.engine.waking.is_on(began) {
                Box::pin(self.engine.awake(deadline)).await;
                costs.spent.waiting_us += self.micros_since(began);
                self.engine.request_placement()
            } else {
                placement
            };
            self.engine.read_from_replicas(placement, request, deadline, &mut costs.spent).await.map(Read::Reply)
        };
        let (siblings, objsize_bytes) = match &read {
            Ok(Read::Single(single)) => (1, single.value().len() as u64),
            Ok(Read::Reply(GetReply::Found(o))) => (o.siblings.len() as u64, o.value_bytes()),
            Ok(Read::Reply(GetReply::NotFound { .. })) => (0, 0),
            Err(error) => {
                stats.node_get_error();
                self.note_read(request, (began, self.micros_since(began)), 0, error, costs);
                return read;
            }
        };
        let took_us = self.micros_since(began);
        self.note_read(request, (began, took_us), objsize_bytes, &"ok", costs);
        stats.node_get(took_us, siblings, objsize_bytes);
        if request.options.as_stored
            && let Some(counts) = self.engine.counts_of_read(&request.bucket)
        {
            counts.get(took_us, siblings, objsize_bytes);
        }
        // Several replicas count what they are asked themselves. One takes as long as the request.
        match (is_alone, request.options.head) {
            (false, _) => {}
            (true, true) => stats.vnode_head(took_us),
            (true, false) => stats.vnode_get(took_us),
        }
        read
    }

    #[cold]
    async fn read_blocking(
        &self,
        placement: RequestPlacement,
        request: &GetRequest,
        costs: &mut Costs<'_>,
    ) -> Result<Read, Error> {
        let mut bytes_max = READ_WITHOUT_RESERVATION_BYTES_MAX;
        loop {
            let (engine, job, placement) = (self.engine.clone(), request.clone(), placement.clone());
            let access = Access::BlockingUpTo(bytes_max);
            let times = JobTimes::queued(&self.engine.slow, self.runtime());
            let times_there = times.clone();
            let work = self.engine.disk_pool.run(move || {
                times_there.begin(&*engine.config.runtime);
                engine.execute_read(&placement, &job, access)
            });
            let read = self.with_time_limit(request.options.timeout, work).await;
            times.add_to(&mut costs.spent, self.runtime());
            match read? {
                Err(Failure::TooLarge(bytes)) => {
                    self.reserve(bytes, costs).await?;
                    bytes_max = bytes;
                }
                read => return read.map_err(Failure::of_blocking_call),
            }
        }
    }

    /// Runs work that takes too long for a thread that serves connections, on threads for such
    /// work.
    pub async fn offload<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        Ok(self.engine.large_request_pool.run(work).await?)
    }

    /// Waits until a thread that waits for disks was free. It shows that requests are answered.
    pub async fn wait_for_disk_thread(&self) -> Result<(), Error> {
        Ok(self.engine.disk_pool.run(|| ()).await?)
    }

    /// Writes one key. On a node that is alone, [`Error::Timeout`] means one of two things: the
    /// write was executed before the answer and only its sync was still missing, or the write will
    /// never be executed. With several nodes it can also mean that too few replicas have answered,
    /// or that another node is still executing the write.
    pub async fn put(&self, request: PutRequest) -> Result<PutReply, Error> {
        self.put_into(request, &mut UncountedMemory).await
    }

    /// [`Self::put`] for a caller whose memory is limited: a large version is read, to merge it or
    /// to answer with it, only after memory for it was reserved.
    pub async fn put_into(&self, mut request: PutRequest, room: &mut dyn MemoryReservation) -> Result<PutReply, Error> {
        let (stats, began) = (&self.engine.stats, self.now());
        let costs = &mut Costs::of_request(room);
        let _pass = self.engine.enter().inspect_err(|error| {
            self.write_is_refused(costs);
            self.note_write(RequestKind::Put, None, began, Some(error), costs);
        })?;
        let _active = stats.node_put_active();
        let mut made_key = None;
        if request.key.is_none() {
            let mut random = [0; 20];
            let filled = self.runtime().fill_random(&mut random).map_err(Error::from);
            filled.inspect_err(|error| {
                self.note_write(RequestKind::Put, None, began, Some(error), costs);
            })?;
            made_key = Some(Bytes::copy_from_slice(&key_text(random)));
            request.key.clone_from(&made_key);
        }
        let operation = request.options.operation;
        let counts = operation.and_then(|number| self.engine.counts_of_operation(&request.bucket, number));
        let key = request.key.as_deref().unwrap_or_default();
        self.engine.hot.note(&request.bucket, key, request.object.value_bytes(), began);
        let named = self.named(&request.bucket, request.key.as_ref());
        let done = self.put_at_costs(request, began, costs).await;
        let kind = if operation.is_some() { RequestKind::Update } else { RequestKind::Put };
        let took_us = self.note_write(kind, named.as_ref(), began, done.as_ref().err(), costs);
        let mut reply = done?;
        reply.key = made_key;
        stats.node_put(took_us);
        if let Some(counts) = counts {
            counts.put(took_us);
        }
        Ok(reply)
    }

    async fn put_at_costs(
        &self,
        request: PutRequest,
        began: Instant,
        costs: &mut Costs<'_>,
    ) -> Result<PutReply, Error> {
        let deadline = self.deadline(began, request.options.timeout);
        let deadline = deadline.with_pass(self.write_pass(&request.bucket, deadline, &mut costs.spent).await?);
        let placement = self.engine.request_placement();
        if self.engine.is_alone_in(&placement) {
            let done = self.coordinate(placement, request, deadline, deadline, costs).await;
            return Ok(done.map_err(PutFailure::into_error)?.reply);
        }
        drop(placement);
        if self.engine.waking.is_on(began) {
            let slept_from = self.now();
            Box::pin(self.engine.awake(deadline.at())).await;
            costs.spent.waiting_us += self.micros_since(slept_from);
        }
        // The box keeps the future of a put on a node that is alone small.
        Box::pin(self.put_in_cluster(request, deadline, costs)).await
    }

    /// The names of a request that will be moved, if they may be needed for the log of slow
    /// requests.
    fn named(&self, bucket: &Bucket, key: Option<&Bytes>) -> Option<(Bucket, Bytes)> {
        self.engine.slow.is_on().then(|| (bucket.clone(), key.cloned().unwrap_or_default()))
    }

    /// Notes a read that has ended: its key may be hot, and the read may have been slow.
    #[inline]
    fn note_read(
        &self,
        request: &GetRequest,
        (began, took_us): (Instant, u64),
        bytes: u64,
        result: &dyn Display,
        costs: &Costs<'_>,
    ) {
        if costs.is_part {
            return;
        }
        self.engine.hot.note(&request.bucket, &request.key, bytes, began);
        if self.engine.slow.is_slow(took_us) {
            self.note_slow_read(request, took_us, result, costs.spent);
        }
    }

    #[cold]
    fn note_slow_read(&self, request: &GetRequest, took_us: u64, result: &dyn Display, mut spent: Spent) {
        if spent == Spent::default() {
            // The read did not leave its thread.
            spent.store_us = took_us;
        }
        let kind = if request.options.as_stored { RequestKind::Fetch } else { RequestKind::Get };
        let (bucket, key) = (&request.bucket, &request.key);
        self.engine.slow.note(&SlowRequest { kind, bucket, key, took_us, spent, result });
    }

    /// Counts a write that was not admitted.
    #[cold]
    fn write_is_refused(&self, costs: &mut Costs<'_>) {
        self.engine.stats.node_put_rejected();
        costs.is_refused = true;
    }

    /// Notes a write or delete of a client that has ended, and returns how long it took. Only here
    /// is decided whether it counts as failed, and whether it was slow. A write that was not
    /// admitted counts as refused, and so not as failed.
    #[inline]
    fn note_write(
        &self,
        kind: RequestKind,
        named: Option<&(Bucket, Bytes)>,
        began: Instant,
        error: Option<&Error>,
        costs: &Costs<'_>,
    ) -> u64 {
        let took_us = self.micros_since(began);
        if let Some((bucket, key)) = named
            && self.engine.slow.is_slow(took_us)
        {
            self.note_slow_write(kind, (bucket, key), took_us, error, costs.spent);
        }
        if error.is_some() && !costs.is_refused {
            self.engine.hot.write_failed();
        }
        took_us
    }

    #[cold]
    fn note_slow_write(
        &self,
        kind: RequestKind,
        (bucket, key): (&Bucket, &Bytes),
        took_us: u64,
        error: Option<&Error>,
        spent: Spent,
    ) {
        let result: &dyn Display = match error {
            Some(error) => error,
            None => &"ok",
        };
        self.engine.slow.note(&SlowRequest { kind, bucket, key, took_us, spent, result });
    }

    /// Reserves memory for a large version, which may wait.
    async fn reserve(&self, bytes: u64, costs: &mut Costs<'_>) -> Result<(), Error> {
        let waits_from = self.now();
        let reserved = costs.room.reserve(bytes).await;
        costs.spent.waiting_us += self.micros_since(waits_from);
        reserved
    }

    /// Coordinates a put that another node has forwarded. It is not forwarded again.
    pub(crate) async fn coordinate_here(&self, put: ForwardedPut) -> Result<PutReply, PutFailure> {
        let _pass = self.engine.enter().map_err(PutFailure::Refused)?;
        check_room(&self.engine).map_err(PutFailure::Refused)?;
        if !self.engine.forwarded_puts.begin(put.number) {
            // What became of the first copy of this request is told in the answer to that one.
            return Err(PutFailure::Ended(Error::Timeout));
        }
        let begin_by = put.begin_by.map_or(put.deadline, |at| Some(put.deadline.map_or(at, |end| end.min(at))));
        let begin_by = begin_by.filter(|_| !is_broken(BrokenRule::ForwardedPutsAreNeverLate));
        let waits_until = Deadline::at_time(begin_by, self.runtime());
        if self.engine.waking.is_on(self.now()) {
            Box::pin(self.engine.awake(begin_by)).await;
        }
        let mut room = LeasedMemory::new(self.engine.replica_memory.clone());
        // Nobody sees the costs: the node that the client asked knows how long it took.
        let costs = &mut Costs::of_parts(&mut room);
        let pass = self.write_pass(&put.request.bucket, waits_until, &mut costs.spent).await;
        let pass = pass.map_err(PutFailure::Refused)?;
        let [begin_by, deadline] =
            [begin_by, put.deadline].map(|at| Deadline::at_time(at, self.runtime()).with_pass(pass));
        let placement = self.engine.request_placement();
        Ok(self.coordinate(placement, put.request, begin_by, deadline, costs).await?.reply)
    }

    /// Stores a put on this node, if it can begin by then, and then on the other replicas.
    pub(super) async fn coordinate(
        &self,
        mut placement: RequestPlacement,
        mut request: PutRequest,
        mut begin_by: Deadline<'_>,
        deadline: Deadline<'_>,
        costs: &mut Costs<'_>,
    ) -> Result<Coordinated, PutFailure> {
        if let Some(hooks) = self.engine.pre_commit_hooks(&request) {
            let hooked_from = self.now();
            // The box keeps the future of a put without hooks small.
            let run = Box::pin(self.engine.run_pre_commit(&mut request, hooks, deadline.at()));
            let run = run.await;
            let hooks_took = self.now().saturating_duration_since(hooked_from);
            costs.spent.hooks_us += u64::try_from(hooks_took.as_micros()).unwrap_or(u64::MAX);
            run.map_err(|error| {
                self.count_refusal(&error);
                PutFailure::Refused(error)
            })?;
            // A slow hook is no reason to run it on another node once more.
            begin_by = begin_by.postponed(hooks_took, deadline.at());
        }
        let (stats, began) = (&self.engine.stats, self.now());
        let before_us = costs.spent.beside_store_us();
        let mut place = None;
        let expectation = if !asks_majority(&request.options) || self.engine.is_alone_in(&placement) {
            None
        } else {
            let of_key = Box::pin(within(self.runtime(), begin_by.at(), self.engine.enter_queue(&request)));
            let of_key = of_key.await;
            let has_turn_at = self.now();
            costs.spent.waiting_us += micros_between(began, has_turn_at);
            place = Some(of_key.map_err(|_| PutFailure::Refused(Error::Timeout))?);
            let read = Box::pin(self.engine.read_majority(&mut placement, &request, begin_by.at())).await;
            costs.spent.replicas_us += self.micros_since(has_turn_at);
            Some(Arc::new(read.map_err(PutFailure::Refused)?))
        };
        let written = self.write(&placement, request, expectation, (begin_by, deadline), costs).await;
        let took_us = self.micros_since(began);
        costs.spent.store_us += took_us.saturating_sub(costs.spent.beside_store_us() - before_us);
        let mut progress = written.map_err(|error| {
            self.count_refusal(&error);
            match Refusal::of(&error) {
                Refusal::Unknown => PutFailure::Ended(error),
                Refusal::OfTheNode | Refusal::OfThePut => PutFailure::Refused(error),
            }
        })?;
        stats.vnode_put(took_us);
        if progress.is_write_once() {
            stats.write_once_put(took_us, progress.value_bytes());
        }
        let (after, tombstone) = (progress.take_after(), progress.tombstone());
        let partition = progress.partition.clone();
        if let Some((key, digest)) = tombstone.as_ref().filter(|_| !self.engine.is_alone_in(&placement)) {
            self.engine.reaper.schedule(&partition, key, *digest);
        }
        let reply = progress.finish(&self.engine, deadline.at(), &mut costs.spent).await;
        let reply = reply.map_err(PutFailure::Ended)?;
        drop(place);
        if let Some(after) = after {
            self.engine.run_post_commit(*after);
        }
        Ok(Coordinated { reply, partition, tombstone })
    }

    fn count_refusal(&self, error: &Error) {
        if matches!(error, Error::PrecommitFail(_)) {
            self.engine.stats.precommit_failed();
        }
    }

    /// Executes a write up to the point where it either counts or has failed.
    async fn write(
        &self,
        placement: &RequestPlacement,
        mut request: PutRequest,
        expectation: Option<Arc<Expectation>>,
        (begin_by, deadline): (Deadline<'_>, Deadline<'_>),
        costs: &mut Costs<'_>,
    ) -> Result<PutProgress, Error> {
        let mut progress = if is_large(&request.object) {
            let pool = &self.engine.large_request_pool;
            Box::pin(self.write_blocking(pool, placement, request, expectation, begin_by, costs)).await?
        } else {
            match self.engine.execute_put(placement, &mut request, expectation.as_deref(), Access::Inline, begin_by) {
                Ok(progress) => progress,
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::WouldBlock | Failure::TooLarge(_)) => {
                    let pool = &self.engine.disk_pool;
                    // The box keeps the future of a put that does not wait small.
                    Box::pin(self.write_blocking(pool, placement, request, expectation, begin_by, costs)).await?
                }
            }
        };
        if let Some(seq) = progress.sync_to {
            let sync = self.engine.synced(&progress.partition, seq);
            let sync = Box::pin(within(self.runtime(), deadline.at(), sync));
            progress.synced = sync.await.unwrap_or(Err(Error::Timeout));
        }
        Ok(progress)
    }

    /// Lets an I/O thread execute a write. When the deadline passes, a write that has not begun
    /// will never begin. A write that has begun is waited for, because it holds the lock of its key
    /// and must end before the client's next request.
    #[cold]
    async fn write_blocking(
        &self,
        pool: &Pool,
        placement: &RequestPlacement,
        mut request: PutRequest,
        expectation: Option<Arc<Expectation>>,
        deadline: Deadline<'_>,
        costs: &mut Costs<'_>,
    ) -> Result<PutProgress, Error> {
        let mut bytes_max = READ_WITHOUT_RESERVATION_BYTES_MAX;
        loop {
            let times = JobTimes::queued(&self.engine.slow, self.runtime());
            let limits = (deadline, bytes_max);
            let done = self.write_within(pool, placement, request, expectation.clone(), limits, &times).await;
            let mut spent = Spent::default();
            times.add_to(&mut spent, self.runtime());
            // The caller counts the time of the store: all that is not counted elsewhere.
            costs.spent.waiting_us += spent.waiting_us;
            match done? {
                Attempt::NeedsRoom { request: again, bytes } => {
                    self.reserve(bytes, costs).await?;
                    (request, bytes_max) = (again, bytes);
                }
                Attempt::Ended(done) => return done.map_err(Failure::of_blocking_call),
            }
        }
    }

    /// Makes one attempt. When the key holds more than `bytes_max`, the request is returned
    /// together with the number of bytes that are needed. Otherwise the request is dropped on the
    /// pool's thread, because dropping a large request takes time.
    async fn write_within(
        &self,
        pool: &Pool,
        placement: &RequestPlacement,
        mut request: PutRequest,
        expectation: Option<Arc<Expectation>>,
        (deadline, bytes_max): (Deadline<'_>, u64),
        times: &JobTimes,
    ) -> Result<Attempt, Error> {
        let (engine, placement, at) = (self.engine.clone(), placement.clone(), deadline.at());
        let generation = deadline.pass().map(|pass| pass.generation());
        let turn = Arc::new(BeginOrGiveUp::default());
        let turn_there = turn.clone();
        let times = times.clone();
        let mut work = pin!(pool.run(move || {
            times.begin(&*engine.config.runtime);
            let mut deadline = Deadline::on_other_thread(at, &*engine.config.runtime, &turn_there);
            if let Some(generation) = generation {
                deadline = deadline.with_pass(engine.write_gate.pass_of(generation));
            }
            let in_time = deadline.check().map_err(Failure::from);
            let access = Access::BlockingUpTo(bytes_max);
            let expectation = expectation.as_deref();
            match in_time.and_then(|()| engine.execute_put(&placement, &mut request, expectation, access, deadline)) {
                Err(Failure::TooLarge(bytes)) => Attempt::NeedsRoom { request, bytes },
                done => Attempt::Ended(done),
            }
        }));
        Ok(match within(self.runtime(), at, &mut work).await {
            Ok(done) => done?,
            Err(_) if turn.give_up() => return Err(Error::Timeout),
            Err(_) => work.await?,
        })
    }

    /// Deletes one key: writes a tombstone whose clock descends the client's clock, or else the
    /// clock that a read finds. The statement about timeouts at [`Self::put`] applies to the read
    /// and the tombstone together.
    pub async fn delete(&self, request: DeleteRequest) -> Result<DeleteReply, Error> {
        let began = self.now();
        self.engine.hot.note(&request.bucket, &request.key, 0, began);
        let named = self.named(&request.bucket, Some(&request.key));
        let mut room = UncountedMemory;
        let costs = &mut Costs::of_parts(&mut room);
        let done = self.delete_at_costs(request, began, costs).await;
        self.note_write(RequestKind::Delete, named.as_ref(), began, done.as_ref().err(), costs);
        done
    }

    async fn delete_at_costs(
        &self,
        request: DeleteRequest,
        began: Instant,
        costs: &mut Costs<'_>,
    ) -> Result<DeleteReply, Error> {
        let DeleteRequest { bucket, key, clock, mut get, mut put, rw } = request;
        let deadline = self.deadline(began, put.timeout);
        // `rw` and its property replace both r and w only when neither was given
        // (docs/riak/pb-api.md §6.3).
        if get.r.is_none() && put.w.is_none() {
            let rw = match rw {
                Some(rw) => rw,
                None => self.engine.buckets.props(&bucket)?.rw,
            };
            (get.r, put.w) = (Some(rw), Some(rw));
        }
        let clock = match clock {
            Some(clock) => clock,
            None => {
                get.head = true;
                let read = GetRequest { bucket: bucket.clone(), key: key.clone(), options: get };
                match self.read_at_costs(&read, costs).await?.into_reply()? {
                    GetReply::Found(object) => object.clock,
                    GetReply::NotFound { .. } => return Ok(DeleteReply { found: false }),
                }
            }
        };
        let _pass = self.engine.enter().inspect_err(|_| self.write_is_refused(costs))?;
        let deadline = deadline.with_pass(self.write_pass(&bucket, deadline, &mut costs.spent).await?);
        put.asis = false;
        let object = Object { clock, siblings: vec![Sibling::tombstone()] };
        let request = PutRequest { bucket, key: Some(key), object, options: put };
        let placement = self.engine.request_placement();
        if !self.engine.is_alone_in(&placement) {
            drop(placement);
            Box::pin(self.put_in_cluster(request, deadline, costs)).await?;
            return Ok(DeleteReply { found: true });
        }
        let done = self.coordinate(placement, request, deadline, deadline, costs).await;
        let Coordinated { partition, tombstone, .. } = done.map_err(PutFailure::into_error)?;
        if let Some((key, digest)) = tombstone {
            self.engine.reaper.schedule(&partition, &key, digest);
        }
        Ok(DeleteReply { found: true })
    }

    pub(super) fn micros_since(&self, began: Instant) -> u64 {
        micros_between(began, self.now())
    }

    /// The time of the wall clock.
    pub fn wall_clock(&self) -> UnixMicros {
        self.engine.now()
    }

    pub(super) fn runtime(&self) -> &dyn Runtime {
        &*self.engine.config.runtime
    }

    pub(super) fn now(&self) -> Instant {
        self.runtime().now()
    }

    fn deadline(&self, began: Instant, limit: Option<Duration>) -> Deadline<'_> {
        let config = &self.engine.config;
        Deadline::after(began, limit.unwrap_or(config.timeout), &*config.runtime)
    }

    /// The right to begin a write to a bucket. While the cluster or the bucket changes, writes wait
    /// for a moment.
    async fn write_pass(
        &self,
        bucket: &Bucket,
        deadline: Deadline<'_>,
        spent: &mut Spent,
    ) -> Result<WritePass<'_>, Error> {
        if let Some(pass) = self.engine.write_gate.pass_to_all() {
            return Ok(pass);
        }
        let waits_from = self.now();
        let pass = Box::pin(self.wait_for_write_pass(bucket, deadline)).await;
        spent.waiting_us += self.micros_since(waits_from);
        pass
    }

    #[cold]
    async fn wait_for_write_pass(&self, bucket: &Bucket, deadline: Deadline<'_>) -> Result<WritePass<'_>, Error> {
        check_bucket(bucket)?;
        let prefix = bucket_prefix(bucket);
        if let Some(pass) = self.engine.write_gate.pass(&prefix) {
            return Ok(pass);
        }
        let patience = self.now() + CLOSED_WAIT_MAX;
        let until = deadline.at().map_or(patience, |at| at.min(patience));
        let waited = within(self.runtime(), Some(until), Box::pin(self.engine.write_gate.wait(&prefix))).await;
        waited.map_err(|_| deadline.check().err().unwrap_or_else(|| self.engine.write_gate.refusal()))
    }

    /// Waits for `work` no longer than `limit`, or else the configured time; a limit of zero means
    /// no limit.
    async fn with_time_limit<T>(
        &self,
        limit: Option<Duration>,
        work: impl Future<Output = Result<T, PoolError>>,
    ) -> Result<T, Error> {
        let limit = limit.unwrap_or(self.engine.config.timeout);
        let at = if limit.is_zero() { None } else { self.now().checked_add(limit) };
        Ok(within(self.runtime(), at, work).await.map_err(|_| Error::Timeout)??)
    }

    /// Refuses new requests, waits for the active requests, and closes the stores. Blocks: not for
    /// network threads.
    pub fn close(&self) {
        self.engine.close();
    }
}

/// Whether writing an object takes too long for a thread that serves connections.
fn is_large(object: &Object) -> bool {
    object.value_bytes() > INLINE_VALUE_BYTES_MAX || object.part_count() > INLINE_PARTS_MAX
}
