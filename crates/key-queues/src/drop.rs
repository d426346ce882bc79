//! Drops a bucket: lets jobs erase what it has, and reap the tombstones.

use crate::error::QueueError;
use crate::fill::{Fill, fill};
use crate::job::{JobEnd, JobId, JobKind};
use crate::queues::Shared;
use crate::saved::{DropStep, SavedJob};
use crate::state::{bucket_of, names_of};
use crate::worker::LOOK;
use ombak_kv::folds::{FoldProgress, FoldRange};
use ombak_kv::{Kv, UncountedMemory, WeakKv};
use ombak_runtime::within;
use ombak_types::Bucket;
use std::sync::Arc;
use std::time::Duration;

/// How many keys the jobs of a drop have. A larger bucket has several jobs, one after the other.
const KEYS_MAX: u64 = 5_000_000;
/// How far the clocks of nodes may be ahead of this one's.
const CLOCK_MARGIN_SECS: u32 = 60;
/// The wait after a failure. It doubles up to the second constant.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Begins to drop a bucket, unless it is being dropped.
pub(crate) async fn begin(shared: &Arc<Shared>, kv: &Kv, bucket: &Bucket) -> Result<JobId, QueueError> {
    // A bucket whose type is not known is refused before there is a job.
    kv.buckets().props(bucket)?;
    if kv.has_empty_folds() {
        return Err(QueueError::FoldsAreOff);
    }
    let names = names_of(bucket);
    let id = {
        let mut state = shared.state.lock();
        if let Some(id) = state.drop_of(&names) {
            return Ok(id);
        }
        let id = state.new_id(None, kv.is_leaving())?;
        state.begin_drop(&names, id);
        id
    };
    let _begins = Begins { shared: shared.clone(), names: names.clone() };
    let mut job = SavedJob::new(id, JobKind::Drop, names, shared.now_secs());
    job.drop = Some(DropStep::Erasing { until_secs: this_second(shared) });
    shared.add(kv, job).await?;
    Ok(id)
}

/// A drop whose record is being written: another one of the bucket does not begin meanwhile.
struct Begins {
    shared: Arc<Shared>,
    names: (String, String),
}

impl Drop for Begins {
    fn drop(&mut self) {
        self.shared.state.lock().drop_has_begun(&self.names);
    }
}

fn this_second(shared: &Shared) -> u32 {
    u32::try_from(shared.now_secs()).unwrap_or(u32::MAX)
}

/// Drops buckets until the engine is closed or gone.
pub(crate) async fn run(shared: Arc<Shared>, engine: WeakKv) {
    loop {
        let Some(kv) = engine.upgrade().filter(Kv::is_open) else { return };
        if let Err(error) = shared.end_what_is_left(&kv).await {
            tracing::warn!(%error, "the end of a job of keys cannot be saved; this is tried again");
        }
        let may_go_on = step(&shared, &kv).await.unwrap_or_else(|(id, error)| {
            failed(&shared, id, &error);
            true
        });
        drop(kv);
        if !may_go_on {
            let until = shared.runtime.now() + LOOK;
            // The limit or the wake-up ends the wait.
            let _ = within(&*shared.runtime, Some(until), shared.work.notified()).await;
        }
    }
}

/// Lets a drop rest, and longer each time. Others have their turn.
fn failed(shared: &Shared, id: JobId, error: &QueueError) {
    tracing::warn!(job = id, %error, "the drop of a bucket waits, and is tried again");
    let now = shared.runtime.now();
    if let Some(job) = shared.state.lock().job_mut(id) {
        job.waits_for = Some(error.to_string());
        job.rests_until = Some(now + (WAIT_MIN * (1 << job.idle.min(16))).min(WAIT_MAX));
        job.idle += 1;
    }
}

/// The first drop of which no job works. If its last job has done nothing, it fails once.
fn next(shared: &Shared) -> Result<Option<SavedJob>, (JobId, QueueError)> {
    let mut state = shared.state.lock();
    let Some(id) = state.next_drop(shared.runtime.now()) else { return Ok(None) };
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
    if kv.has_empty_folds() {
        return Err(of(QueueError::FoldsAreOff));
    }
    let (kind, until_secs) = match at {
        DropStep::Erasing { until_secs } => (JobKind::Erase, until_secs),
        DropStep::Reaping { until_secs } => (JobKind::Reap, until_secs),
    };
    let range = FoldRange { modified: Some((0, until_secs)), ..FoldRange::of_bucket(bucket) };
    let wanted = Fill { kind, range, part_of: Some(id), keys_max: Some(KEYS_MAX) };
    // A fold has a bounded number of keys in memory, and a hash of each one more.
    let found = fill(shared, kv, wanted, &mut UncountedMemory, &FoldProgress::default()).await.map_err(of)?;
    if let Some(job) = shared.state.lock().job_mut(id) {
        (job.waits_for, job.idle, job.rests_until) = (None, 0, None);
        job.done_at_fill = Some(job.saved.done);
    }
    match (at, found) {
        (_, 1..) => {}
        (DropStep::Erasing { .. }, 0) => {
            if let Some(job) = shared.state.lock().job_mut(id) {
                job.done_at_fill = None;
                // The tombstones were written until now, by nodes whose clocks may be ahead. To
                // reap one more does no harm.
                let until_secs = this_second(shared).saturating_add(CLOCK_MARGIN_SECS);
                job.saved.drop = Some(DropStep::Reaping { until_secs });
            }
            shared.save(kv, id).await.map_err(of)?;
        }
        (DropStep::Reaping { .. }, 0) => shared.end(kv, id, JobEnd::Done).await.map_err(of)?,
    }
    Ok(true)
}
