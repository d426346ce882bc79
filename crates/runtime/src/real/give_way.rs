//! Threads that leave the processor to others.

use super::burst::work_in_bursts;

/// The nice value of such a thread, the highest that there is. While other threads want a whole
/// processor, the thread has about 1.5 % of it; a processor that nobody else wants, it has alone.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// Lets the calling thread give way to all others that want the processor, from now on. A thread
/// that does so must hold no lock for long that threads with requests of clients take, and calls
/// [`super::pause_if_due`] in work that takes long.
///
/// On Linux a nice value belongs to a thread. Elsewhere it belongs to the process and stays as it
/// is, so the thread does no more than pause.
pub fn give_way() {
    work_in_bursts();
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        // The work is done nevertheless, only less politely.
        tracing::warn!(%error, "a thread cannot give way to others");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::NICE;
    use crate::{FairPool, FairPoolConfig, OtherClocks, Pool, Runtime, ServingThreads, Tenant, TokioRuntime};
    use rustix::process::getpriority_process;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    fn nice() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[tokio::test]
    async fn background_threads_give_way_and_no_others() {
        let before = nice();
        let tokio: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let serving: Arc<dyn Runtime> = Arc::new(ServingThreads::new(Vec::new()));
        let other: Arc<dyn Runtime> = Arc::new(OtherClocks::of(serving.clone()));
        for runtime in [tokio, serving, other] {
            let background = runtime.start_background_threads("test", 2).unwrap();
            let (tell, told) = oneshot::channel();
            background.spawn(Box::pin(async move { tell.send(nice()).unwrap() }));
            assert_eq!(told.await, Ok(NICE));
            let pool = Pool::start(&runtime, "test", 1, 8).unwrap();
            assert_eq!(pool.run(nice).await, Ok(before));
            for (gives_way, expected) in [(false, before), (true, NICE)] {
                let config = FairPoolConfig { name: "test", threads: 1, jobs_max: 8, gives_way, times: None };
                let pool = FairPool::start(&runtime, config).unwrap();
                assert_eq!(pool.of(Tenant::default()).run(nice).await, Ok(expected));
            }
        }
        assert_eq!(nice(), before, "the thread that starts a pool stays as it is");
    }
}
