//! Drops a bucket: lets jobs erase what it has, and reap the tombstones.

use crate::error::QueueError;
use crate::fill::{Fill, fill};
use crate::job::{JobEnd, JobId, JobKind};
use crate::queues::Shared;
use crate::saved::{DropStep, SavedJob};
use crate::state::{bucket_of, names_of};
use crate::worker::LOOK;
use futures_util::future::ready;
use ombak_kv::folds::FoldRange;
use ombak_kv::{Kv, MemoryReservation, WeakKv};
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Bucket, Error};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many keys the jobs of a drop have. A larger bucket has several jobs, one after the other.
const KEYS_MAX: u64 = 5_000_000;
/// The wait after a failure. It doubles up to the second constant.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The memory of a drop's fold, which one home partition of keys per node bounds.
struct Uncounted;

impl MemoryReservation for Uncounted {
    fn reserve(&mut self, _bytes: u64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }
}

/// Begins to drop a bucket, unless it is being dropped.
pub(crate) async fn begin(shared: &Arc<Shared>, kv: &Kv, bucket: &Bucket) -> Result<JobId, QueueError> {
    // A bucket whose type is not known is refused before there is a job.
    kv.buckets().props(bucket)?;
    let names = names_of(bucket);
    let id = {
        let mut state = shared.state.lock();
        if let Some(id) = state.drop_of(&names) {
            return Ok(id);
        }
        state.new_id()?
    };
    let mut job = SavedJob::new(id, JobKind::Drop, names, shared.now_secs());
    job.drop = Some(DropStep::Erasing { until_secs: this_second(shared) });
    shared.add(kv, job).await?;
    Ok(id)
}

fn this_second(shared: &Shared) -> u32 {
    u32::try_from(shared.now_secs()).unwrap_or(u32::MAX)
}

/// Drops buckets until the engine is closed or gone.
pub(crate) async fn run(shared: Arc<Shared>, engine: WeakKv) {
    let mut failures = 0_u32;
    let mut go_on_at = shared.runtime.now();
    loop {
        let Some(kv) = engine.upgrade().filter(Kv::is_open) else { return };
        let now = shared.runtime.now();
        let did_something = if now < go_on_at { Ok(false) } else { step(&shared, &kv).await };
        let until = match did_something {
            Ok(true) => {
                failures = 0;
                now
            }
            Ok(false) => now + LOOK,
            Err((id, error)) => {
                go_on_at = failed(&shared, id, &error, failures);
                failures += 1;
                now + LOOK
            }
        };
        drop(kv);
        if until > now {
            // The limit or the wake-up ends the wait.
            let _ = within(&*shared.runtime, Some(until), shared.work.notified()).await;
        }
    }
}

fn failed(shared: &Shared, id: JobId, error: &QueueError, failures: u32) -> Instant {
    tracing::warn!(job = id, %error, "the drop of a bucket waits, and is tried again");
    if let Some(job) = shared.state.lock().job_mut(id) {
        job.waits_for = Some(error.to_string());
    }
    shared.runtime.now() + (WAIT_MIN * (1 << failures.min(16))).min(WAIT_MAX)
}

/// The first drop of which no job works. If its last job has done nothing, it fails once.
fn next(shared: &Shared) -> Result<Option<SavedJob>, (JobId, QueueError)> {
    let mut state = shared.state.lock();
    let Some(id) = state.next(JobKind::Drop, shared.runtime.now()).map(|job| job.saved.id) else { return Ok(None) };
    if state.part_of(id).is_some() {
        return Ok(None);
    }
    let Some(job) = state.job_mut(id) else { return Ok(None) };
    if job.done_at_fill.take() == Some(job.saved.done) {
        return Err((id, QueueError::NothingDone));
    }
    Ok(Some(job.saved.clone()))
}

/// Takes the next step of the first drop. Returns whether there may be another one.
async fn step(shared: &Arc<Shared>, kv: &Kv) -> Result<bool, (JobId, QueueError)> {
    let Some(job) = next(shared)? else { return Ok(false) };
    let (id, bucket) = (job.id, bucket_of(&job));
    let Some(at) = job.drop else { return Ok(false) };
    let of = |error| (id, error);
    let (kind, until_secs) = match at {
        DropStep::Erasing { until_secs } => (JobKind::Erase, until_secs),
        DropStep::Reaping { until_secs } => (JobKind::Reap, until_secs),
    };
    let range = FoldRange { modified: Some((0, until_secs)), ..FoldRange::of_bucket(bucket) };
    let wanted = Fill { kind, range, part_of: Some(id), keys_max: Some(KEYS_MAX) };
    let found = fill(shared, kv, wanted, &mut Uncounted).await.map_err(of)?;
    if let Some(job) = shared.state.lock().job_mut(id) {
        job.waits_for = None;
        job.done_at_fill = Some(job.saved.done);
    }
    match (at, found) {
        (_, 1..) => {}
        (DropStep::Erasing { .. }, 0) => {
            if let Some(job) = shared.state.lock().job_mut(id) {
                job.done_at_fill = None;
                // The tombstones were written until now.
                job.saved.drop = Some(DropStep::Reaping { until_secs: this_second(shared) });
            }
            shared.save(kv, id).await.map_err(of)?;
        }
        (DropStep::Reaping { .. }, 0) => shared.end(kv, id, JobEnd::Done).await.map_err(of)?,
    }
    Ok(true)
}
