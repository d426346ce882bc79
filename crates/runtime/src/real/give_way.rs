//! Threads that leave the processor to others.

use super::burst::work_in_bursts;
use std::io;
use std::panic::resume_unwind;

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
    set_nice(NICE);
}

#[cfg(target_os = "linux")]
fn set_nice(nice: i32) {
    if let Err(error) = rustix::process::setpriority_process(None, nice) {
        // The work is done nevertheless, only less politely.
        tracing::warn!(%error, nice, "a thread cannot lower its priority");
    }
}

/// The nice value of work that no get or put of a client waits for. While other threads want a
/// whole processor, such a thread has about a tenth of it. With the lowest priority, a thread can
/// wait for a busy processor for seconds, and puts wait for the lock of a store that it has
/// meanwhile.
#[cfg(target_os = "linux")]
const NICE_BEHIND: i32 = 10;

/// Lets the calling thread, and the threads that it starts, come behind threads with requests of
/// clients, from now on. The thread works in bursts ([`super::pause_if_due`]). It may hold locks
/// that requests need, for a few microseconds at a time.
pub(super) fn come_behind() {
    work_in_bursts();
    #[cfg(target_os = "linux")]
    set_nice(NICE_BEHIND);
}

/// Does work in a thread of its own that comes behind threads with requests of clients, as do the
/// threads that the work starts. Blocks until it is done.
///
/// # Errors
/// The system starts no further thread. Then nothing was done.
///
/// # Panics
/// If the work does.
pub fn do_behind<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let behind = || {
        #[cfg(target_os = "linux")]
        set_nice(NICE_BEHIND);
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("ombak-behind".to_owned()).spawn_scoped(scope, behind)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{NICE, NICE_BEHIND, do_behind};
    use crate::{
        FairPool, FairPoolConfig, OtherClocks, PAUSE_MAX, Pool, Runtime, ServingThreads, Tenant, TokioRuntime,
    };
    use rustix::process::getpriority_process;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    fn nice() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[tokio::test]
    async fn each_kind_of_thread_has_its_priority() {
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
            for (comes_behind, expected) in [(false, before), (true, NICE_BEHIND)] {
                let config = FairPoolConfig {
                    name: "test",
                    threads: 1,
                    jobs_max: 8,
                    comes_behind,
                    pause_max: PAUSE_MAX,
                    times: None,
                };
                let pool = FairPool::start(&runtime, config).unwrap();
                assert_eq!(pool.of(Tenant::default()).run(nice).await, Ok(expected));
            }
        }
        assert_eq!(nice(), before, "the thread that starts a pool stays as it is");
        assert_eq!(do_behind(nice).unwrap(), NICE_BEHIND);
        let of_further_thread = || std::thread::spawn(nice).join().unwrap();
        assert_eq!(do_behind(of_further_thread).unwrap(), NICE_BEHIND, "threads that it starts come behind, too");
        assert_eq!(nice(), before);
    }
}
