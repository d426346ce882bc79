//! A queue of jobs without threads, for tests that run on one thread.

use crate::pool::{Job, JobQueue, PoolError};

/// Executes each job where it is submitted, before the submission returns. So the order of events
/// is the same in each run.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobsAtOnce;

impl JobQueue for JobsAtOnce {
    fn submit(&self, job: Job) -> Result<(), PoolError> {
        job();
        Ok(())
    }

    fn stop(&self) {}
}
