//! Deadlines that change often and are seldom reached.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline of one connection. Moving it later costs nothing: the timer is set again only if it
/// has fired too early or would fire too late. So a busy connection uses the timers of its thread
/// about once per time limit, and not once per request.
#[derive(Default)]
pub struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    /// The waker that the timer wakes.
    waker: Option<Waker>,
}

impl Deadline {
    /// Ready when `at` has passed. `now` is the current time.
    pub fn poll_passed(&mut self, at: Instant, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() > at {
            timer.as_mut().reset(at);
        } else if now < timer.deadline() && self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            // The timer has been polled and will fire later.
            return Poll::Pending;
        }
        self.waker = Some(cx.waker().clone());
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= at {
                self.waker = None;
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    async fn passes(deadline: &mut Deadline, at: Instant) {
        poll_fn(|cx| deadline.poll_passed(at, Instant::now(), cx)).await;
        assert!(Instant::now() >= at);
    }

    #[tokio::test]
    async fn a_deadline_may_move_either_way() {
        let (start, mut deadline) = (Instant::now(), Deadline::default());
        let far = start + Duration::from_secs(3600);
        let waited = tokio::time::timeout(Duration::from_millis(1), passes(&mut deadline, far)).await;
        assert!(waited.is_err());
        passes(&mut deadline, start + Duration::from_millis(5)).await;
        passes(&mut deadline, start + Duration::from_millis(10)).await;
        passes(&mut deadline, start).await;
    }
}
