//! What MapReduce has in common over both interfaces: how a job is read, who may run it, and which
//! jobs are switched off.

use crate::access::{Access, AccessPolicy, Permission, Session};
use crate::decoding::{self, DecodeError};
use crate::jobs::{JobClass, JobSwitches};
use crate::memory::Held;
use bytes::Bytes;
use ombak_kv::Kv;
use ombak_mapreduce::{Encoding, Inputs, Job, JobError, Mapper, Phase, Reducer};
use ombak_types::{Bucket, Error};
use std::collections::HashSet;
use std::sync::Arc;

/// About how many bytes the results of a job have at most that are not streamed.
pub(crate) const RESULTS_BYTES_MAX: usize = 64 << 20;

/// The highest number of buckets that are remembered as allowed while a job is checked.
const KNOWN_BUCKETS_MAX: usize = 1_000;

/// Why a request runs no job.
pub(crate) enum NoJob {
    /// It is no job.
    Bad(JobError),
    /// Such jobs are switched off.
    Off(Error),
    /// The client may not run it.
    Forbidden(String),
}

impl DecodeError for NoJob {
    fn is_too_large(&self) -> bool {
        matches!(self, Self::Bad(JobError::TooLarge { .. }))
    }
}

/// What a job is checked against.
#[derive(Clone)]
pub(crate) struct JobGate {
    pub(crate) jobs: JobSwitches,
    pub(crate) policy: Option<Arc<dyn AccessPolicy>>,
    pub(crate) session: Arc<Session>,
}

/// Reads a job, and checks that the client may run it. `held` has what the job takes afterwards.
///
/// # Errors
/// [`Error::Overload`]: there is no memory for it.
pub(crate) async fn read_job(
    kv: &Kv,
    held: &mut Held<'_>,
    encoding: Encoding,
    request: &Bytes,
    gate: JobGate,
) -> Result<Result<Job, NoJob>, Error> {
    decoding::decode(kv, held, request, move |request, budget| {
        let job = encoding.job(request, budget).map_err(NoJob::Bad)?;
        check_enabled(gate.jobs, &job).map_err(NoJob::Off)?;
        check_access(gate.policy.as_deref(), &gate.session, &job).map_err(NoJob::Forbidden)?;
        Ok(job)
    })
    .await
}

/// Checks that jobs like this one are not switched off.
fn check_enabled(jobs: JobSwitches, job: &Job) -> Result<(), Error> {
    jobs.check(JobClass::MapReduce)?;
    let is_script = |phase: &Phase| {
        matches!(
            phase,
            Phase::Map { function: Mapper::Script(_), .. } | Phase::Reduce { function: Reducer::Script(_), .. }
        )
    };
    if job.phases.iter().any(is_script) { jobs.check(JobClass::MapReduceJs) } else { Ok(()) }
}

/// Asks for the permissions of a job: to run jobs over the buckets of its inputs, and to find the
/// keys there. Inputs that name no bucket need the permission for
/// the default type.
fn check_access(policy: Option<&dyn AccessPolicy>, session: &Session, job: &Job) -> Result<(), String> {
    let Some(policy) = policy else { return Ok(()) };
    let finding = match job.inputs {
        Inputs::Bucket { .. } => Some(Permission::LIST_KEYS),
        Inputs::Index(_) => Some(Permission::INDEX),
        Inputs::Keys(_) | Inputs::Search { .. } | Inputs::Function { .. } => None,
    };
    let (mut names_buckets, mut known) = (false, HashSet::new());
    for bucket in job.buckets() {
        names_buckets = true;
        if known.contains(&bucket) {
            continue;
        }
        // Riak asks in this order.
        if let Some(finding) = finding {
            policy.check(session, &access(finding, &bucket))?;
        }
        policy.check(session, &access(Permission::MAP_REDUCE, &bucket))?;
        if known.len() == KNOWN_BUCKETS_MAX {
            known.clear();
        }
        known.insert(bucket);
    }
    if names_buckets {
        return Ok(());
    }
    policy.check(session, &Access::to_type(Permission::MAP_REDUCE, None))
}

fn access(permission: Permission, bucket: &Bucket) -> Access<'_> {
    Access::to_bucket(permission, Some(&bucket.bucket_type), &bucket.name)
}
