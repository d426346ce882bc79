//! Waiting no longer than until a given time.

use crate::runtime::Runtime;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

/// The time limit passed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time limit has passed")]
pub struct TimeLimitPassed;

/// Waits for `work` until `at`; `None` means that there is no limit. Work that completes at its
/// first poll needs no timer. `work` is dropped when the limit passes.
pub async fn within<F: Future>(
    runtime: &(impl Runtime + ?Sized),
    at: Option<Instant>,
    work: F,
) -> Result<F::Output, TimeLimitPassed> {
    let mut work = pin!(work);
    let mut timer = None;
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        let Some(at) = at else { return Poll::Pending };
        let timer = timer.get_or_insert_with(|| runtime.sleep_until(at));
        timer.as_mut().poll(cx).map(|()| Err(TimeLimitPassed))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokioRuntime;
    use std::future::{pending, ready};
    use std::time::Duration;

    #[tokio::test]
    async fn work_that_is_ready_is_taken_even_after_the_limit() {
        let runtime = TokioRuntime;
        let past = runtime.now().checked_sub(Duration::from_secs(1));
        assert_eq!(within(&runtime, past, ready(7)).await, Ok(7));
    }

    #[tokio::test]
    async fn the_limit_ends_a_wait_and_no_limit_does_not() {
        let runtime = TokioRuntime;
        let soon = Some(runtime.now() + Duration::from_millis(1));
        assert_eq!(within(&runtime, soon, pending::<()>()).await, Err(TimeLimitPassed));
        let (give, take) = tokio::sync::oneshot::channel();
        tokio::spawn(async move { give.send(7) });
        assert_eq!(within(&runtime, None, take).await, Ok(Ok(7)));
    }
}
