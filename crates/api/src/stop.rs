//! The stop signal of a node, as a connection waits for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How long a node that stops waits for a client that accepts nothing of its answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Completes when the node stops, or when the sender of the signal was dropped.
///
/// A connection polls this whenever it waits for a request. The channel keeps the wakers of all
/// waiting tasks in a list under a lock, which the network threads would share. So the channel is
/// polled only if its value has changed or if the waker is new.
pub(crate) struct Stop {
    wait: Pin<Box<dyn Future<Output = ()> + Send>>,
    news: watch::Receiver<bool>,
    waker: Option<Waker>,
}

impl Stop {
    pub(crate) fn new(shutdown: &watch::Receiver<bool>) -> Self {
        let mut receiver = shutdown.clone();
        let wait = Box::pin(async move {
            // An error means that the sender was dropped.
            drop(receiver.wait_for(|stop| *stop).await);
        });
        Self { wait, news: shutdown.clone(), waker: None }
    }
}

impl Stop {
    /// The same signal, for another wait of the connection.
    pub(crate) fn again(&self) -> Self {
        Self::new(&self.news)
    }

    /// Completes some time after the node was told to stop: a client that has accepted nothing
    /// meanwhile is not waited for any longer.
    pub(crate) async fn and_patience(&mut self) {
        if !self.is_set() {
            self.await;
        }
        sleep(PATIENCE).await;
    }

    /// Whether the node stops.
    pub(crate) fn is_set(&self) -> bool {
        match self.news.has_changed() {
            // This is the usual case, and it takes no lock.
            Ok(false) => false,
            Ok(true) => *self.news.borrow(),
            Err(_) => true,
        }
    }
}

impl Future for Stop {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let registered = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if registered && matches!(self.news.has_changed(), Ok(false)) {
            return Poll::Pending;
        }
        self.waker = Some(cx.waker().clone());
        self.wait.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn it_comes_when_it_is_said_before_or_after_waiting_began() {
        for wait_first in [false, true] {
            let (stop, shutdown) = watch::channel(false);
            let mut waiting = Stop::new(&shutdown);
            if wait_first {
                assert_eq!((&mut waiting).now_or_never(), None);
                assert_eq!((&mut waiting).now_or_never(), None);
            }
            stop.send_replace(true);
            assert_eq!(waiting.now_or_never(), Some(()));
            assert_eq!(Stop::new(&shutdown).now_or_never(), Some(()));
        }
    }

    #[tokio::test]
    async fn it_wakes_who_waits_and_does_not_mind_other_news() {
        let (stop, shutdown) = watch::channel(false);
        let waiting = tokio::spawn(Stop::new(&shutdown));
        tokio::task::yield_now().await;
        stop.send_replace(false);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(stop);
        waiting.await.unwrap();
    }
}
