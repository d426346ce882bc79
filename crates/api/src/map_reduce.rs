//! What MapReduce has in common over both interfaces: how a job is read, who may run it, and which
//! jobs are switched off.
//!
//! A client needs the permission for each bucket of which a job takes keys or reads objects. Those
//! that the request names are checked when it has been read. Those that a search finds, or that
//! come out of a phase, are checked by [`ClientAccess`] while the job runs.

#[cfg(test)]
pub(crate) mod sample_jobs;

use crate::access::{Access, AccessPolicy, Permission, Session};
use crate::decoding::{self, DecodeError};
use crate::jobs::{JobClass, JobSwitches};
use crate::memory::Held;
use crate::search::query_access;
use bytes::Bytes;
use ombak_jobs::{Jobs, RunningJob};
use ombak_kv::Kv;
use ombak_mapreduce::{BucketAccess, Encoding, Inputs, Job, JobError};
use ombak_types::{Bucket, DecodeBudget, Error};
use std::collections::HashSet;
use std::sync::Arc;

/// About how many bytes the results of a job have at most that are not streamed.
pub(crate) const RESULTS_BYTES_MAX: usize = 64 << 20;

/// The highest number of buckets that are remembered as allowed while a job is checked.
const KNOWN_BUCKETS_MAX: usize = 1_000;

/// What Riak says of a phase that follows links while security is on.
pub(crate) const NO_LINKS: &str = "Link walking is deprecated in Riak 2.0 and is not compatible with security.";

/// Why a request runs no job.
pub(crate) enum NoJob {
    /// It is no job.
    Bad(JobError),
    /// Such jobs are switched off.
    Off(Error),
    /// The client may not run it.
    Forbidden(String),
    /// It follows links, which nobody may while security is on.
    FollowsLinks,
}

impl DecodeError for NoJob {
    fn is_too_large(&self) -> bool {
        matches!(self, Self::Bad(JobError::TooLarge { .. }))
    }
}

/// What a job is checked against.
#[derive(Clone)]
pub(crate) struct JobGate {
    jobs: JobSwitches,
    /// The client, if it needs permissions.
    client: Option<Arc<ClientAccess>>,
}

/// What a client may do. A job asks it about the buckets to which its phases lead.
pub(crate) struct ClientAccess {
    policy: Arc<dyn AccessPolicy>,
    session: Arc<Session>,
}

/// A job that may run.
pub(crate) struct AdmittedJob {
    job: Job,
    /// Decides which buckets it may read; `None` if it may read all.
    client: Option<Arc<ClientAccess>>,
}

impl JobGate {
    pub(crate) fn new(jobs: JobSwitches, policy: Option<&Arc<dyn AccessPolicy>>, session: &Arc<Session>) -> Self {
        let client = policy
            .filter(|policy| policy.is_in_force())
            .map(|policy| Arc::new(ClientAccess { policy: Arc::clone(policy), session: Arc::clone(session) }));
        Self { jobs, client }
    }

    /// Whether the client needs permissions.
    pub(crate) const fn asks(&self) -> bool {
        self.client.is_some()
    }

    /// Reads a job and checks it. Riak asks for permissions before it looks at the switches.
    fn admit(&self, encoding: Encoding, request: &[u8], budget: &mut DecodeBudget) -> Result<AdmittedJob, NoJob> {
        let job = match encoding.job(request, budget) {
            Ok(job) => job,
            Err(error) => {
                return Err(self.jobs.check(JobClass::MapReduce).map_or_else(NoJob::Off, |()| NoJob::Bad(error)));
            }
        };
        if let Some(client) = &self.client {
            client.check(&job).map_err(NoJob::Forbidden)?;
        }
        check_enabled(self.jobs, &job).map_err(NoJob::Off)?;
        if self.asks() && job.follows_links() {
            return Err(NoJob::FollowsLinks);
        }
        Ok(AdmittedJob { job, client: self.client.clone() })
    }
}

impl AdmittedJob {
    /// Whether the job has phases. Without any, its results are its inputs.
    pub(crate) fn has_phases(&self) -> bool {
        !self.job.phases.is_empty()
    }

    /// Whether the job may fail with a status of its own: it may be refused a bucket while it runs,
    /// or its search may not be carried out.
    pub(crate) const fn may_be_refused(&self) -> bool {
        self.client.is_some() || matches!(self.job.inputs, Inputs::Search { .. } | Inputs::Function { .. })
    }

    /// Begins the job.
    pub(crate) fn run(self, jobs: &Jobs) -> RunningJob {
        jobs.run(self.job, self.client.map(|client| client as Arc<dyn BucketAccess>))
    }
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
) -> Result<Result<AdmittedJob, NoJob>, Error> {
    decoding::decode(kv, held, request, move |request, budget| gate.admit(encoding, request, budget)).await
}

/// Checks that jobs like this one are not switched off.
fn check_enabled(jobs: JobSwitches, job: &Job) -> Result<(), Error> {
    jobs.check(JobClass::MapReduce)?;
    if matches!(job.inputs, Inputs::Search { .. }) {
        jobs.check(JobClass::YokozunaQuery)?;
    }
    if job.phases.iter().any(|phase| phase.script().is_some()) { jobs.check(JobClass::MapReduceJs) } else { Ok(()) }
}

impl ClientAccess {
    /// Asks for the permissions of a job: to run jobs over the buckets that it names, and to find
    /// the keys there. A search names none; the buckets of what it finds are checked then. As in
    /// Riak, other inputs that name no bucket need the permission for everything.
    fn check(&self, job: &Job) -> Result<(), String> {
        let finding = match job.inputs {
            Inputs::Bucket { .. } => Some(Permission::LIST_KEYS),
            Inputs::Index(_) => Some(Permission::INDEX),
            Inputs::Keys(_) | Inputs::Search { .. } | Inputs::Function { .. } => None,
        };
        let is_search = if let Inputs::Search { index, .. } = &job.inputs {
            self.policy.check(&self.session, &query_access(index))?;
            true
        } else {
            false
        };
        let (mut names_buckets, mut known) = (false, HashSet::new());
        for bucket in job.buckets() {
            names_buckets = true;
            if known.contains(&bucket) {
                continue;
            }
            // Riak asks in this order.
            if let Some(finding) = finding {
                self.policy.check(&self.session, &access(finding, &bucket))?;
            }
            self.may_read(&bucket)?;
            if known.len() == KNOWN_BUCKETS_MAX {
                known.clear();
            }
            known.insert(bucket);
        }
        if !names_buckets && !is_search {
            self.policy.check(&self.session, &Access::to_node(Permission::MAP_REDUCE))?;
        }
        job.function_buckets().try_for_each(|bucket| self.may_read(bucket))
    }
}

impl BucketAccess for ClientAccess {
    fn may_read(&self, bucket: &Bucket) -> Result<(), String> {
        self.policy.check(&self.session, &access(Permission::MAP_REDUCE, bucket))
    }
}

fn access(permission: Permission, bucket: &Bucket) -> Access<'_> {
    Access::to_bucket(permission, Some(&bucket.bucket_type), &bucket.name)
}
