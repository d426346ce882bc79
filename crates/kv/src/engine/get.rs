//! Executes a read.
//!
//! Hot path. A node that is alone answers from the bytes of its store where one copy decides. The
//! coordinator handles all other reads: on the caller's thread over the only replica, or over the
//! replicas of several nodes (`get_run`). A property test shows that all ways give the same answer.

use super::engine::{Engine, check_bucket, check_key, storage_key};
use super::get_run::{GetRun, ReadKey, Said};
use super::placements::RequestPlacement;
use crate::coordination::get::{Answer, Ask, GetAction, GetCore, GetEvent, GetPlan, reply_with};
use crate::coordination::{Replica, effective_n};
use crate::hooks::ValueKind;
use crate::partition::{Access, Failure, Partition};
use crate::replica::{RequestReplicas, StoreKind};
use crate::requests::{GetOptions, GetReply, GetRequest, Read};
use crate::routing::Route;
use crate::slow::{Spent, micros_between};
use bytes::Bytes;
use ombak_ring::placement::Placement;
use ombak_runtime::within;
use ombak_storage::Stored;
use ombak_types::names::decode_storage_key;
use ombak_types::{Bucket, BucketProps, Error, Quorum};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a read that only repairs waits for the replicas.
const REPAIR_READ_MAX: Duration = Duration::from_secs(5);

/// How long a read without a deadline waits until this node knows a newer placement.
const LEARN_MAX: Duration = Duration::from_secs(60);

impl Engine {
    /// Executes one read on a node that is alone, from the checks to the reply.
    pub(crate) fn execute_read(
        &self,
        placement: &Placement,
        request: &GetRequest,
        access: Access,
    ) -> Result<Read, Failure> {
        let buckets = self.buckets.snapshot();
        let props = buckets.props(checked(request)?)?;
        let (plan, replicas, home) = self.plan_read(placement, request, props)?;
        let (partition, key) = self.locate(&request.bucket, &request.key, home)?;
        // Only the coordinator's answer depends on the time: a single plain sibling never expires.
        let coordinate = |read| {
            let plan = GetPlan { now: self.now(), ..plan };
            let kind = self.config.hooks.kind_of(props).cloned();
            coordinate(&partition, &key, plan, &replicas.list, kind, read, access).map(Read::Reply)
        };
        if plan.head {
            return coordinate(None);
        }
        // The plan was accepted, so the only copy has all the positions that the request needs.
        let found = match partition.read(&key, access) {
            Ok(Some(found)) => match partition.single(&key, &found) {
                Ok(Some(single)) if !single.is_deleted() => return Ok(Read::Single(single)),
                Ok(_) => Ok(Some(found)),
                Err(corrupt) => Err(corrupt),
            },
            other => other,
        };
        coordinate(Some(found))
    }

    /// Executes one read over the nodes of the key's preference list. If one of them knows a newer
    /// placement, the read begins anew with it.
    pub(crate) async fn read_from_replicas(
        self: &Arc<Self>,
        mut placement: RequestPlacement,
        request: &GetRequest,
        deadline: Option<Instant>,
        spent: &mut Spent,
    ) -> Result<GetReply, Error> {
        loop {
            match self.begin_read(placement, request, deadline)?.answer(spent).await {
                Said::Reply(reply) => return reply,
                Said::Outdated { by, known } => {
                    let runtime = &*self.config.runtime;
                    let learns_from = runtime.now();
                    let learned = self.learn_placement(by, known);
                    let until = deadline.unwrap_or_else(|| runtime.now() + LEARN_MAX);
                    let learned = within(runtime, Some(until), learned).await;
                    spent.waiting_us += micros_between(learns_from, runtime.now());
                    learned.map_err(|_| Error::Timeout)?;
                    placement = self.request_placement();
                }
            }
        }
    }

    /// Reads a key from all of its primaries that are up, and repairs those that are behind or
    /// cannot read what they hold.
    pub(crate) async fn repair_key(self: &Arc<Self>, storage_key: &Bytes) -> Result<(), Error> {
        let Ok((bucket, key)) = decode_storage_key(storage_key) else { return Ok(()) };
        let options = GetOptions { r: Some(Quorum::One), sloppy_quorum: false, ..GetOptions::default() };
        let deadline = self.config.runtime.now() + REPAIR_READ_MAX;
        let request = GetRequest { bucket, key, options };
        self.begin_read(self.request_placement(), &request, Some(deadline))?.repair_all().await;
        Ok(())
    }

    /// Reads a key from the store of this node alone, as a client would see that copy. `None`: this
    /// node is no replica of the key, or has no copy that can be read.
    pub(crate) fn read_here(&self, bucket: &Bucket, key: &Bytes) -> Result<Option<GetReply>, Error> {
        let buckets = self.buckets.snapshot();
        let props = buckets.props(bucket)?;
        Route::of(props)?;
        let placement = self.placement();
        let home = self.home_of(&placement, bucket, key, props);
        if !placement.home(home).replica_set(props.n_val).contains(&self.identity.node_id) {
            return Ok(None);
        }
        let Some(partition) = self.partitions.get(home) else { return Ok(None) };
        let key = storage_key(bucket, key);
        let found = partition.read(&key, Access::Blocking).ok().flatten();
        let Some(object) = found.and_then(|found| partition.decode(&key, &found).ok()) else { return Ok(None) };
        let kind = self.config.hooks.kind_of(props).cloned();
        let plan = GetPlan::of_one_copy(props, self.prefers_live(props), self.now());
        reply_with(object, &plan, kind.as_deref()).map(Some)
    }

    fn begin_read(
        self: &Arc<Self>,
        placement: RequestPlacement,
        request: &GetRequest,
        deadline: Option<Instant>,
    ) -> Result<Box<GetRun>, Error> {
        let buckets = self.buckets.snapshot();
        let props = buckets.props(checked(request)?)?;
        let (plan, replicas, home) = self.plan_read(&placement, request, props)?;
        let (core, first) = GetCore::start(GetPlan { now: self.now(), ..plan }, &replicas.list);
        let values = self.config.hooks.kind_of(props).cloned();
        let key = ReadKey {
            counts: if request.options.as_stored { self.counts_of_kind(props) } else { None },
            partition: home,
            n_val: props.n_val,
            placement,
            key: storage_key(&request.bucket, &request.key).into(),
            kind: StoreKind { dvv: props.dvv_enabled, values: values.as_ref().map_or(0, |kind| kind.number()) },
        };
        Ok(GetRun::start(self.clone(), (core.of_kind(values), first), &replicas, key, deadline))
    }

    /// The thresholds of a read, the nodes that it asks, and the home partition of its key.
    fn plan_read(
        &self,
        placement: &Placement,
        request: &GetRequest,
        props: &BucketProps,
    ) -> Result<(GetPlan, RequestReplicas, u32), Error> {
        Route::of(props)?;
        let n = effective_n(request.options.n_val, props)?;
        let home = self.home_of(placement, &request.bucket, &request.key, props);
        let sloppy = request.options.sloppy_quorum;
        let replicas = RequestReplicas::of_get(self.viewer(), placement.home(home), n, sloppy);
        let plan = GetPlan::new(&request.options, props, n, &replicas.list)?;
        let prefers_live = self.prefers_live(props);
        Ok((GetPlan { local: replicas.local, prefers_live, ..plan }, replicas, home))
    }
}

fn checked(request: &GetRequest) -> Result<&Bucket, Error> {
    check_bucket(&request.bucket)?;
    check_key(&request.key)?;
    Ok(&request.bucket)
}

/// Asks this node, the only replica, until the read is answered. `read` is its answer, if it was
/// already asked.
fn coordinate(
    partition: &Partition,
    key: &[u8],
    plan: GetPlan,
    replicas: &[Replica],
    kind: Option<Arc<dyn ValueKind>>,
    mut read: Option<Result<Option<Stored>, Failure>>,
    access: Access,
) -> Result<GetReply, Failure> {
    let (core, mut actions) = GetCore::start(plan, replicas);
    let mut core = core.of_kind(kind);
    let mut reply = Err(Error::Timeout);
    while let Some(action) = actions.pop() {
        match action {
            GetAction::Ask { replica, ask } => {
                let answer = answer(partition, key, ask, read.take(), access)?;
                actions.extend(core.on(GetEvent::Answer { replica, answer }));
            }
            GetAction::Reply(said) => reply = said,
            // This node holds the only copy, so there is nothing to repair.
            GetAction::Repair { .. } | GetAction::Done => {}
        }
    }
    Ok(reply?)
}

fn answer(
    partition: &Partition,
    key: &[u8],
    ask: Ask,
    read: Option<Result<Option<Stored>, Failure>>,
    access: Access,
) -> Result<Answer, Failure> {
    let found = match (ask, read) {
        (Ask::Object, Some(read)) => read,
        (Ask::Object, None) => partition.read(key, access),
        (Ask::Head | Ask::Exchange, _) => partition.read_head(key, access),
    };
    let decode = |found: Stored| Ok((partition.decode(key, &found)?, found.digest));
    match found.and_then(|found| found.map(decode).transpose()) {
        Ok(None) => Ok(Answer::NotFound { full: partition.store().complete() }),
        Ok(Some((object, digest))) if ask == Ask::Object => Ok(Answer::Object(object, digest)),
        Ok(Some((head, digest))) => Ok(Answer::Head(head, digest)),
        Err(again @ (Failure::WouldBlock | Failure::TooLarge(_))) => Err(again),
        Err(Failure::Refused(why)) => Ok(Answer::Failed(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KvConfig;
    use crate::partition::digest;
    use bytes::Bytes;
    use ombak_runtime::OtherClocks;
    use ombak_storage::{MemoryConfig, MemoryFactory, Write};
    use ombak_types::time::UnixMicros;
    use ombak_types::{Actor, Bucket, Object, Quorum, Sibling, SiblingMeta, VectorClock, stored_object};
    use proptest::prelude::*;
    use std::sync::Arc;

    const NOW_SECS: u32 = 1_000;

    prop_compose! {
        fn sibling()(
            value in prop::collection::vec(any::<u8>(), 0..40),
            last_modified in prop::option::of((0u64..9).prop_map(UnixMicros)),
            charset in prop::option::weighted(0.2, Just(Bytes::from_static(b"utf-8"))),
            content_type in prop::option::of(Just(Bytes::from_static(b"text/plain"))),
            deleted in prop::bool::weighted(0.3),
            expires_secs in prop::option::weighted(0.3, NOW_SECS - 2..NOW_SECS + 2),
        ) -> Sibling {
            let expires_secs = expires_secs.filter(|_| !deleted);
            let meta = SiblingMeta { last_modified, charset, content_type, deleted, expires_secs, ..SiblingMeta::default() };
            Sibling { value: value.into(), meta }
        }
    }

    fn object() -> impl Strategy<Value = Object> {
        (prop::collection::vec(sibling(), 1..3), 0u8..3).prop_map(|(siblings, actors)| {
            let mut clock = VectorClock::new();
            (0..actors).for_each(|n| drop(clock.increment(&Actor::new(&[n]), UnixMicros(0))));
            Object { clock, siblings }
        })
    }

    fn options() -> impl Strategy<Value = GetOptions> {
        let quorum = || prop::option::of((0u32..5).prop_map(Quorum::Count));
        let flags = (prop::option::of(any::<bool>()), prop::option::of(any::<bool>()), any::<bool>());
        (quorum(), quorum(), quorum(), flags).prop_map(|(r, pr, node_confirms, (basic_quorum, notfound_ok, head))| {
            GetOptions { r, pr, node_confirms, basic_quorum, notfound_ok, head, ..GetOptions::default() }
        })
    }

    /// The answer of the coordinator over the only replica, on this thread.
    fn coordinated(engine: &Engine, request: &GetRequest) -> Result<GetReply, Failure> {
        let buckets = engine.buckets.snapshot();
        let props = buckets.props(&request.bucket)?;
        let (plan, replicas, home) = engine.plan_read(&engine.placement(), request, props)?;
        let plan = GetPlan { now: engine.now(), ..plan };
        let (partition, key) = engine.locate(&request.bucket, &request.key, home)?;
        coordinate(&partition, &key, plan, &replicas.list, None, None, Access::Inline)
    }

    /// The answer of the run over replicas, with this node as the only one.
    fn run_over_replicas(engine: &Arc<Engine>, request: &GetRequest) -> Result<GetReply, Failure> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Ok(tokio.block_on(engine.read_from_replicas(
            engine.request_placement(),
            request,
            None,
            &mut Spent::default(),
        ))?)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn all_ways_give_the_same_answer(
            object in prop::option::weighted(0.9, object()),
            siblings in any::<bool>(),
            rotten in prop::option::weighted(0.1, any::<prop::sample::Index>()),
            options in options(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
            let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), stores);
            config.ring_size = 8;
            let clock = || UnixMicros::from_secs(NOW_SECS.into());
            config.runtime = Arc::new(OtherClocks::of(config.runtime).with_wall_clock(clock));
            config.default_props.insert("allow_mult".into(), siblings.into());
            let engine = Arc::new(Engine::open(config).unwrap());
            let (bucket, key) = (Bucket::untyped("b"), Bytes::from_static(b"k"));
            if let Some(object) = object {
                store(&engine, &bucket, &key, &object, rotten);
            }
            let request = GetRequest { bucket, key, options };
            let short = engine.execute_read(&engine.placement(), &request, Access::Inline).and_then(|read| Ok(read.into_reply()?));
            prop_assert_eq!(&short, &coordinated(&engine, &request));
            prop_assert_eq!(&short, &run_over_replicas(&engine, &request));
            engine.close();
        }
    }

    fn store(engine: &Engine, bucket: &Bucket, key: &[u8], object: &Object, rotten: Option<prop::sample::Index>) {
        let buckets = engine.buckets.snapshot();
        let home = engine.home_of(&engine.placement(), bucket, key, buckets.props(bucket).unwrap());
        let (partition, key) = engine.locate(bucket, key, home).unwrap();
        let mut head = Vec::new();
        stored_object::encode_head(object, &mut head);
        if let Some(bit) = rotten.map(|at| at.index(head.len() * 8)) {
            head[bit / 8] ^= 1 << (bit % 8);
        }
        let body: Vec<&[u8]> = object.siblings.iter().map(|s| &s.value[..]).collect();
        let write = Write {
            key: &key,
            head: &head,
            body: &body,
            digest: digest(object),
            tstamp_secs: 1,
            expires_secs: 0,
            has_terms: false,
        };
        partition.store().put(&write).unwrap();
    }
}
