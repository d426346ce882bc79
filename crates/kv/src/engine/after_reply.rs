//! Requests after their replies: the client was answered, and the last replicas were not heard yet.
//!
//! What it is: nearly always the last answer comes a moment after the others and changes nothing.
//! A task and a timer for it would cost more than the answer. So one task for each thread looks at
//! all such requests again and again, with pauses, for as long as there are any. A request that
//! takes longer, or that has more to do, gets a task of its own.
//!
//! What it is not: nobody waits for what happens here, so a short delay does no harm. What has a
//! limit of time has it also here: a request gets its own task long before its limit.
//!
//! Hot path: nearly every get and put over several nodes ends here.

use ombak_runtime::{BoxFuture, Runtime, RuntimeExt};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

/// The pause between two looks at the requests of a thread.
const PAUSE: Duration = Duration::from_millis(2);
/// How often a request is looked at before it gets a task of its own.
const LOOKS_MAX: u8 = 4;
/// Maximum number of requests in one list. Further ones get tasks at once.
const LIST_MAX: usize = 1_024;
/// Number of lists. Threads that serve connections have different ones, as long as they suffice.
const LISTS: usize = 16;

/// What a look at a request has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It has come to its end.
    Ended,
    /// It waits for answers, which change nothing as far as is known.
    Waits,
    /// There is something to do for which somebody must be woken.
    NeedsTask,
}

/// A request whose client was answered.
pub(super) trait AfterReply: Send {
    /// Takes the answers that have come. The context wakes nobody.
    fn look(&mut self, cx: &mut Context<'_>) -> Look;

    /// Goes on to the end.
    fn finish(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The requests of all threads whose clients were answered.
///
/// The tasks that look at the requests own them. So they do not outlive the runtime, although they
/// refer to the engine.
#[derive(Default)]
pub(super) struct AfterReplies {
    lists: [Mutex<Weak<List>>; LISTS],
}

/// The requests of one thread.
type List = Mutex<Waiting>;

#[derive(Default)]
struct Waiting {
    /// Each with the number of looks at it.
    requests: Vec<(u8, Box<dyn AfterReply>)>,
    /// Whether the task of the list has ended.
    is_closed: bool,
}

impl AfterReplies {
    /// Brings a request to its end, beside the caller.
    pub(super) fn add(&self, runtime: &Arc<dyn Runtime>, mut request: Box<dyn AfterReply>) {
        // This look also sends what was not sent yet, and takes the caller's waker away.
        match request.look(&mut Context::from_waker(Waker::noop())) {
            Look::Ended => return,
            Look::NeedsTask => return runtime.spawn(request.finish()),
            Look::Waits => {}
        }
        let mut place = self.lists[runtime.thread_number() % LISTS].lock();
        let list = place.upgrade();
        match list.as_ref().map(|list| list.lock()) {
            Some(mut waiting) if !waiting.is_closed => {
                if waiting.requests.len() < LIST_MAX {
                    waiting.requests.push((0, request));
                } else {
                    drop(waiting);
                    drop(place);
                    runtime.spawn(request.finish());
                }
            }
            _ => {
                let list = Arc::new(Mutex::new(Waiting { requests: vec![(0, request)], is_closed: false }));
                *place = Arc::downgrade(&list);
                drop(place);
                runtime.spawn(Box::pin(look_again(runtime.clone(), list)));
            }
        }
    }
}

/// Looks at the requests of a list until there are none.
async fn look_again(runtime: Arc<dyn Runtime>, list: Arc<List>) {
    let mut requests = Vec::new();
    loop {
        runtime.sleep(PAUSE).await;
        std::mem::swap(&mut requests, &mut list.lock().requests);
        let mut kept = Vec::new();
        for (looks, mut request) in requests.drain(..) {
            match request.look(&mut Context::from_waker(Waker::noop())) {
                Look::Ended => {}
                Look::Waits if looks + 1 < LOOKS_MAX => kept.push((looks + 1, request)),
                Look::Waits | Look::NeedsTask => runtime.spawn(request.finish()),
            }
        }
        let mut waiting = list.lock();
        waiting.requests.append(&mut kept);
        waiting.is_closed = waiting.requests.is_empty();
        if waiting.is_closed {
            return;
        }
    }
}

/// What a node keeps of requests whose clients were answered.
#[derive(Default)]
pub(super) struct AnsweredRequests {
    /// Those that wait for their last replicas.
    pub(super) waiting: AfterReplies,
    /// Bytes of the versions that puts hold for replicas which have not answered. Puts that wait
    /// for their reply count, too.
    pub(super) put_bytes: AtomicU64,
    /// Number of reads that still repair replicas.
    pub(super) repairing_reads: AtomicUsize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_runtime::TokioRuntime;
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    #[derive(Default)]
    struct Counts {
        looks: AtomicUsize,
        finished: AtomicUsize,
        dropped: AtomicUsize,
    }

    struct Counted {
        /// The number of the look at which it is not waiting any more, and what that look finds.
        until: (usize, Look),
        looks: usize,
        counts: Arc<Counts>,
    }

    impl AfterReply for Counted {
        fn look(&mut self, _cx: &mut Context<'_>) -> Look {
            self.looks += 1;
            self.counts.looks.fetch_add(1, Ordering::SeqCst);
            if self.looks >= self.until.0 { self.until.1 } else { Look::Waits }
        }

        fn finish(self: Box<Self>) -> BoxFuture<'static, ()> {
            Box::pin(async move {
                self.counts.finished.fetch_add(1, Ordering::SeqCst);
            })
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.counts.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Adds `count` requests, waits until they are gone, and returns how often they were looked at
    /// and how many had a task.
    async fn run(requests: &AfterReplies, count: usize, until: (usize, Look)) -> (usize, usize) {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let counts = Arc::new(Counts::default());
        for _ in 0..count {
            requests.add(&runtime, Box::new(Counted { until, looks: 0, counts: counts.clone() }));
        }
        let patience = Instant::now() + Duration::from_secs(60);
        while counts.dropped.load(Ordering::SeqCst) < count {
            assert!(Instant::now() < patience, "a request stays for ever");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        (counts.looks.load(Ordering::SeqCst), counts.finished.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_request_is_looked_at_until_it_ends() {
        let requests = AfterReplies::default();
        assert_eq!(run(&requests, 3, (1, Look::Ended)).await, (3, 0));
        assert_eq!(run(&requests, 3, (3, Look::Ended)).await, (9, 0));
        assert_eq!(run(&requests, 3, (2, Look::Ended)).await, (6, 0), "the list was closed, and begins anew");
    }

    #[tokio::test]
    async fn a_request_that_takes_long_or_has_more_to_do_gets_a_task() {
        let requests = AfterReplies::default();
        assert_eq!(run(&requests, 2, (1, Look::NeedsTask)).await, (2, 2));
        assert_eq!(run(&requests, 2, (2, Look::NeedsTask)).await, (4, 2));
        let looks = 1 + usize::from(LOOKS_MAX);
        assert_eq!(run(&requests, 2, (usize::MAX, Look::Ended)).await, (2 * looks, 2));
    }

    #[tokio::test]
    async fn a_list_is_bounded() {
        let requests = AfterReplies::default();
        let (_, finished) = run(&requests, LIST_MAX + 5, (3, Look::Ended)).await;
        assert_eq!(finished, 5);
    }

    #[test]
    fn requests_end_with_the_runtime() {
        let (requests, counts) = (AfterReplies::default(), Arc::new(Counts::default()));
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        tokio.block_on(async {
            let request = Counted { until: (usize::MAX, Look::Ended), looks: 0, counts: counts.clone() };
            requests.add(&(Arc::new(TokioRuntime) as Arc<dyn Runtime>), Box::new(request));
        });
        drop(tokio);
        assert_eq!(counts.dropped.load(Ordering::SeqCst), 1);
    }
}
