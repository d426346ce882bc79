//! Threads that leave the processor to others.

/// Lets the calling thread give way to all others that want the processor, from now on. A thread
/// that does so must hold no lock for long that threads with requests of clients take. Threads that
/// it starts give way, too.
///
/// On Linux the thread gets the policy `SCHED_IDLE`: a thread of the usual policy that wakes takes
/// the processor from it at once. With a nice value it would go on for some milliseconds. While
/// others want a whole processor, it has about 0.3 % of it. Elsewhere this does nothing.
pub fn give_way() {
    #[cfg(target_os = "linux")]
    linux::give_way();
}

#[cfg(target_os = "linux")]
mod linux {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };

    /// The highest nice value, for where the policy is not allowed.
    const NICE: i32 = 19;

    pub(super) fn give_way() {
        let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let Err(error) = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy) else {
            return;
        };
        tracing::info!(?error, "a thread cannot have the policy SCHED_IDLE; it gets the nice value 19");
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            // The work is done nevertheless, only less politely.
            tracing::warn!(%error, "a thread cannot give way to others");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::{OtherClocks, Pool, Runtime, ServingThreads, TokioRuntime};
    use std::sync::Arc;
    use thread_priority::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};
    use tokio::sync::oneshot;

    const IDLE: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);

    fn policy() -> ThreadSchedulePolicy {
        thread_schedule_policy().unwrap()
    }

    #[tokio::test]
    async fn background_threads_give_way_and_no_others() {
        let before = policy();
        assert_ne!(before, IDLE);
        let tokio: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let serving: Arc<dyn Runtime> = Arc::new(ServingThreads::new(Vec::new()));
        let other: Arc<dyn Runtime> = Arc::new(OtherClocks::of(serving.clone()));
        for runtime in [tokio, serving, other] {
            let background = runtime.start_background_threads("test", 2).unwrap();
            let (tell, told) = oneshot::channel();
            background.spawn(Box::pin(async move { tell.send(policy()).unwrap() }));
            assert_eq!(told.await, Ok(IDLE));
            let pool = Pool::start(&runtime, "test", 1, 8).unwrap();
            assert_eq!(pool.run(policy).await, Ok(before));
        }
        assert_eq!(policy(), before, "the thread that starts others stays as it is");
    }
}
