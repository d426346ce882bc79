//! A program that is open in a pool.

use crate::pool::{FunctionPool, Work};
use crate::{Calls, FunctionError, Lane, Owner};
use ombak_runtime::within;
use ombak_script::Program;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// A program that is open in a pool, for one owner: a phase of a job, or a hook. Threads of the
/// pool keep sessions for it until the last clone is dropped.
#[derive(Clone)]
pub struct Function {
    opened: Arc<Opened>,
}

/// What the clones of a function share.
pub(crate) struct Opened {
    pub(crate) program: Program,
    pub(crate) lane: Lane,
    pool: FunctionPool,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.pool.end_sessions(self.lane);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("lane", &self.opened.lane).finish_non_exhaustive()
    }
}

/// Where an answer goes. Whoever has the answer first takes the sender out.
struct Answer<T>(Mutex<Option<oneshot::Sender<Result<T, FunctionError>>>>);

impl<T> Answer<T> {
    fn give(&self, result: Result<T, FunctionError>) {
        let sender = self.0.lock().take();
        if let Some(sender) = sender {
            // Sending fails when the caller has gone.
            let _ = sender.send(result);
        }
    }

    /// Whether nobody waits any more.
    fn is_unwanted(&self) -> bool {
        self.0.lock().as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

impl Function {
    pub(crate) fn new(pool: FunctionPool, lane: Lane, program: Program) -> Self {
        Self { opened: Arc::new(Opened { program, lane, pool }) }
    }

    /// Runs work on a thread of the pool, for this owner, and waits for its result, no longer than
    /// until `deadline`. The work makes its calls through [`Calls`]; it must do little else,
    /// because only calls are watched. Work that has not begun when the caller drops the future, or
    /// at the deadline, is never done. If the deadline or the end of the pool has ended a call, the
    /// result says that, and not what the work has made of the call's error.
    pub async fn run<T: Send + 'static>(
        &self,
        owner: &Owner,
        deadline: Instant,
        work: impl FnOnce(&mut Calls<'_>) -> T + Send + 'static,
    ) -> Result<T, FunctionError> {
        let (give, take) = oneshot::channel();
        let answer = Arc::new(Answer(Mutex::new(Some(give))));
        let (done, wanted) = (answer.clone(), answer.clone());
        self.opened.pool.submit(Work {
            function: self.opened.clone(),
            owner: owner.clone(),
            deadline,
            is_unwanted: Box::new(move || wanted.is_unwanted()),
            run: Box::new(move |calls| {
                let result = work(calls);
                done.give(calls.take_end().map_or(Ok(result), Err));
            }),
            fail: Arc::new(move |why| answer.give(Err(why))),
        })?;
        match within(self.opened.pool.runtime(), Some(deadline), take).await {
            Ok(answered) => answered.unwrap_or(Err(FunctionError::Stopped)),
            Err(_) => Err(FunctionError::Late),
        }
    }

    /// Queues work that nobody waits for. `done` learns of work that could not be done; it is
    /// called at most once, and must be quick.
    pub fn submit(
        &self,
        owner: &Owner,
        deadline: Instant,
        work: impl FnOnce(&mut Calls<'_>) + Send + 'static,
        failed: impl Fn(FunctionError) + Send + Sync + 'static,
    ) -> Result<(), FunctionError> {
        self.opened.pool.submit(Work {
            function: self.opened.clone(),
            owner: owner.clone(),
            deadline,
            is_unwanted: Box::new(|| false),
            run: Box::new(work),
            fail: Arc::new(failed),
        })
    }
}
