//! The interface of the engine: reads, writes and deletes of one key.

use super::memory_reservation::{MemoryReservation, READ_WITHOUT_RESERVATION_BYTES_MAX, UncountedMemory};
use super::requests::{DeleteReply, DeleteRequest, GetReply, GetRequest, PutReply, PutRequest, Read};
use crate::config::KvConfig;
use crate::engine::{Engine, PutProgress};
use crate::names::key_text;
use crate::partition::{Access, BeginOrGiveUp, Deadline, Failure, Partition};
use crate::start::OpenError;
use bytes::Bytes;
use ombak_ring::Ring;
use ombak_runtime::{Pool, PoolError, Runtime, within};
use ombak_types::{Error, NodeId, Object, Sibling, StoreFailure};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The engine of one node. Cheap to clone: clones share everything.
///
/// On a node that is alone, `get`, `put` and `delete` complete without suspending when the data that
/// they need is in memory or in the page cache, so network threads may call them directly. Otherwise they wait for an I/O
/// thread; that needs a tokio runtime with time enabled.
#[derive(Clone)]
pub struct Kv {
    pub(crate) engine: Arc<Engine>,
}

/// Largest value of a put, in bytes, that is written on the thread that received the request:
/// copying and checking a larger value takes too long there.
const INLINE_VALUE_BYTES_MAX: u64 = 256 << 10;
/// Largest number of links, metadata pairs and index entries of such a put: each takes some hundred
/// nanoseconds.
const INLINE_PARTS_MAX: usize = 1_000;

/// A write that this node has coordinated.
struct Coordinated {
    reply: PutReply,
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
        let (stats, began) = (&self.engine.stats, self.now());
        let _pass = self.engine.enter().inspect_err(|_| stats.node_get_rejected())?;
        let _active = stats.node_get_active();
        let ring = self.engine.ring();
        let read = if self.engine.is_alone(&ring) {
            match self.engine.execute_read(&ring, request, Access::Inline) {
                Ok(read) => Ok(read),
                Err(Failure::Refused(error)) => Err(error),
                Err(Failure::WouldBlock | Failure::TooLarge(_)) => self.read_blocking(ring, request, room).await,
            }
        } else {
            let deadline = self.deadline(began, request.options.timeout).at();
            self.engine.read_from_replicas(&ring, request, deadline).await.map(Read::Reply)
        };
        let (siblings, objsize_bytes) = match &read {
            Ok(Read::Single(single)) => (1, single.value().len() as u64),
            Ok(Read::Reply(GetReply::Found(o))) => (o.siblings.len() as u64, o.value_bytes()),
            Ok(Read::Reply(GetReply::NotFound { .. })) => (0, 0),
            Err(_) => {
                stats.node_get_error();
                return read;
            }
        };
        // Only one partition is asked, so it takes as long as the request.
        let took_us = self.micros_since(began);
        stats.node_get(took_us, siblings, objsize_bytes);
        if request.options.head {
            stats.vnode_head(took_us)
        } else {
            stats.vnode_get(took_us)
        }
        read
    }

    #[cold]
    async fn read_blocking(
        &self,
        ring: Arc<Ring>,
        request: &GetRequest,
        room: &mut dyn MemoryReservation,
    ) -> Result<Read, Error> {
        let mut bytes_max = READ_WITHOUT_RESERVATION_BYTES_MAX;
        loop {
            let (engine, job, ring) = (self.engine.clone(), request.clone(), ring.clone());
            let work =
                self.engine.disk_pool.run(move || engine.execute_read(&ring, &job, Access::BlockingUpTo(bytes_max)));
            match self.with_time_limit(request.options.timeout, work).await? {
                Err(Failure::TooLarge(bytes)) => {
                    room.reserve(bytes).await?;
                    bytes_max = bytes;
                }
                read => return read.map_err(error_of_blocking_call),
            }
        }
    }

    /// Runs work that takes too long for a thread that serves connections, on threads for such
    /// work.
    pub async fn offload<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        Ok(self.engine.large_request_pool.run(work).await?)
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
        let _pass = self.engine.enter().inspect_err(|_| stats.node_put_rejected())?;
        let _active = stats.node_put_active();
        let deadline = self.deadline(began, request.options.timeout);
        let mut made_key = None;
        if request.key.is_none() {
            let mut random = [0; 20];
            self.runtime().fill_random(&mut random).map_err(Error::from)?;
            made_key = Some(Bytes::copy_from_slice(&key_text(random)));
            request.key.clone_from(&made_key);
        }
        let ring = self.engine.ring();
        let mut reply = match self.engine.coordinator_elsewhere(&ring, &request)? {
            None => self.coordinate(&ring, request, deadline, room).await?.reply,
            Some(node) => self.forward(node, request, deadline).await?,
        };
        reply.key = made_key;
        let took_us = self.micros_since(began);
        stats.node_put(took_us);
        stats.vnode_put(took_us);
        Ok(reply)
    }

    /// Lets another node coordinate a put. After the deadline it is unknown whether that node has
    /// executed it, so no other node is asked (docs/design/replication.md §12).
    async fn forward(&self, node: NodeId, request: PutRequest, deadline: Deadline<'_>) -> Result<PutReply, Error> {
        let forwarded = self.engine.replica_client(node).coordinate(request, deadline.at());
        within(self.runtime(), deadline.at(), forwarded).await.unwrap_or(Err(Error::Timeout))
    }

    /// Coordinates a put that another node has forwarded. It is not forwarded again.
    pub(crate) async fn coordinate_here(&self, request: PutRequest, at: Option<Instant>) -> Result<PutReply, Error> {
        let began = self.now();
        let _pass = self.engine.enter()?;
        let deadline = Deadline::at_time(at, self.runtime());
        let ring = self.engine.ring();
        let coordinated = self.coordinate(&ring, request, deadline, &mut UncountedMemory).await?;
        self.engine.stats.vnode_put(self.micros_since(began));
        Ok(coordinated.reply)
    }

    /// Stores a put on this node, and then on the other replicas.
    async fn coordinate(
        &self,
        ring: &Arc<Ring>,
        request: PutRequest,
        deadline: Deadline<'_>,
        room: &mut dyn MemoryReservation,
    ) -> Result<Coordinated, Error> {
        let (stats, began) = (&self.engine.stats, self.now());
        let progress = self.write(ring, request, deadline, room).await.inspect_err(|e| self.count_refusal(e))?;
        let object_bytes = progress.value_bytes();
        if progress.is_write_once() {
            stats.write_once_put(self.micros_since(began), object_bytes);
        }
        let (hooks, tombstone) = (progress.postcommit_hooks(), progress.tombstone());
        let partition = progress.partition.clone();
        let reply = progress.finish(&self.engine, deadline.at()).await?;
        stats.postcommit_failed(hooks);
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
        ring: &Arc<Ring>,
        mut request: PutRequest,
        deadline: Deadline<'_>,
        room: &mut dyn MemoryReservation,
    ) -> Result<PutProgress, Error> {
        let mut progress = if is_large(&request.object) {
            self.write_blocking(&self.engine.large_request_pool, ring, request, deadline, room).await?
        } else {
            match self.engine.execute_put(ring, &mut request, Access::Inline, deadline) {
                Ok(progress) => progress,
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::WouldBlock | Failure::TooLarge(_)) => {
                    self.write_blocking(&self.engine.disk_pool, ring, request, deadline, room).await?
                }
            }
        };
        if let Some(seq) = progress.sync_to {
            let sync = self.engine.synced(&progress.partition, seq);
            progress.synced = within(self.runtime(), deadline.at(), sync).await.unwrap_or(Err(Error::Timeout));
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
        ring: &Arc<Ring>,
        mut request: PutRequest,
        deadline: Deadline<'_>,
        room: &mut dyn MemoryReservation,
    ) -> Result<PutProgress, Error> {
        let mut bytes_max = READ_WITHOUT_RESERVATION_BYTES_MAX;
        loop {
            match self.write_within(pool, ring, request, deadline, bytes_max).await? {
                Attempt::NeedsRoom { request: again, bytes } => {
                    room.reserve(bytes).await?;
                    (request, bytes_max) = (again, bytes);
                }
                Attempt::Ended(done) => return done.map_err(error_of_blocking_call),
            }
        }
    }

    /// Makes one attempt. When the key holds more than `bytes_max`, the request is returned
    /// together with the number of bytes that are needed. Otherwise the request is dropped on the
    /// pool's thread, because dropping a large request takes time.
    async fn write_within(
        &self,
        pool: &Pool,
        ring: &Arc<Ring>,
        mut request: PutRequest,
        deadline: Deadline<'_>,
        bytes_max: u64,
    ) -> Result<Attempt, Error> {
        let (engine, ring, at) = (self.engine.clone(), ring.clone(), deadline.at());
        let turn = Arc::new(BeginOrGiveUp::default());
        let turn_there = turn.clone();
        let mut work = pin!(pool.run(move || {
            let deadline = Deadline::on_other_thread(at, &*engine.config.runtime, &turn_there);
            let in_time = deadline.check().map_err(Failure::from);
            let access = Access::BlockingUpTo(bytes_max);
            match in_time.and_then(|()| engine.execute_put(&ring, &mut request, access, deadline)) {
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
        let DeleteRequest { bucket, key, clock, mut get, mut put, rw } = request;
        let deadline = self.deadline(self.now(), put.timeout);
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
                match self.get(read).await? {
                    GetReply::Found(object) => object.clock,
                    GetReply::NotFound { .. } => return Ok(DeleteReply { found: false }),
                }
            }
        };
        let _pass = self.engine.enter()?;
        put.asis = false;
        let object = Object { clock, siblings: vec![Sibling::tombstone()] };
        let request = PutRequest { bucket, key: Some(key), object, options: put };
        let ring = self.engine.ring();
        if let Some(node) = self.engine.coordinator_elsewhere(&ring, &request)? {
            self.forward(node, request, deadline).await?;
            return Ok(DeleteReply { found: true });
        }
        let Coordinated { partition, tombstone, .. } =
            self.coordinate(&ring, request, deadline, &mut UncountedMemory).await?;
        if let Some((key, digest)) = tombstone {
            self.engine.reaper.schedule(&partition, &key, digest);
        }
        Ok(DeleteReply { found: true })
    }

    fn micros_since(&self, began: Instant) -> u64 {
        u64::try_from(self.now().saturating_duration_since(began).as_micros()).unwrap_or(u64::MAX)
    }

    fn runtime(&self) -> &dyn Runtime {
        &*self.engine.config.runtime
    }

    fn now(&self) -> Instant {
        self.runtime().now()
    }

    fn deadline(&self, began: Instant, limit: Option<Duration>) -> Deadline<'_> {
        let config = &self.engine.config;
        Deadline::after(began, limit.unwrap_or(config.timeout), &*config.runtime)
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

/// The error behind a failure of a call that was allowed to block.
fn error_of_blocking_call(failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) => error,
        Failure::WouldBlock | Failure::TooLarge(_) => StoreFailure::internal("a blocking call would block").into(),
    }
}
