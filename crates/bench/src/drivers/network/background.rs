//! A task that a worker runs in addition to its operations, one at a time.

use crate::drivers::{DONE, Outcome, Reason};
use std::future::Future;
use tokio::task::JoinHandle;

/// A background task. It is aborted when this value is dropped.
#[derive(Debug, Default)]
pub struct Background(Option<JoinHandle<Result<(), Reason>>>);

impl Background {
    /// Starts `work` unless the previous task is still running, which counts as success. The
    /// returned outcome is that of the previous task, so that its failure is counted.
    pub async fn start<F>(&mut self, work: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Result<(), Reason>> + Send + 'static,
    {
        if self.0.as_ref().is_some_and(|task| !task.is_finished()) {
            return DONE;
        }
        let before = match self.0.take() {
            Some(task) => task.await.unwrap_or_else(|_| Err("crash".into())),
            None => Ok(()),
        };
        self.0 = Some(tokio::spawn(work()));
        before.map_or_else(Outcome::Failed, |()| DONE)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
