//! What MapReduce has in common over both interfaces: who may run a job, and which jobs are
//! switched off.

use crate::access::{Access, AccessPolicy, Permission};
use crate::jobs::{JobClass, JobSwitches};
use ombak_mapreduce::{Inputs, Job, Mapper, Phase, Reducer};
use ombak_types::{Bucket, Error};

/// About how many bytes the results of a job have at most that are not streamed.
pub(crate) const RESULTS_BYTES_MAX: usize = 64 << 20;

/// Checks that jobs like this one are not switched off.
pub(crate) fn check_enabled(jobs: JobSwitches, job: &Job) -> Result<(), Error> {
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
/// keys there. Inputs that name no bucket need the permission for all.
pub(crate) fn check_access(policy: Option<&dyn AccessPolicy>, job: &Job) -> Result<(), String> {
    let Some(policy) = policy else { return Ok(()) };
    let buckets = job.buckets();
    if buckets.is_empty() {
        policy.check(&Access { permission: Permission::MapReduce, bucket_type: None, bucket: None })?;
    }
    let finding = match job.inputs {
        Inputs::Bucket { .. } => Some(Permission::ListKeys),
        Inputs::Index(_) => Some(Permission::Index),
        Inputs::Keys(_) | Inputs::Search { .. } | Inputs::Function { .. } => None,
    };
    for bucket in buckets {
        policy.check(&access(Permission::MapReduce, bucket))?;
        if let Some(finding) = finding {
            policy.check(&access(finding, bucket))?;
        }
    }
    Ok(())
}

fn access(permission: Permission, bucket: &Bucket) -> Access<'_> {
    Access::to_bucket(permission, Some(&bucket.bucket_type), &bucket.name)
}
