//! Ends the process if a stop hangs.
//!
//! A stop waits for requests in progress and closes the stores. If any of this hangs, for example
//! on a disk that does not respond, the process ends nevertheless. The stores survive that as they
//! survive `kill -9`.

use std::io::Write;
use std::process;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long the stores may take to close, after the time for requests in progress has passed. The
/// documentation of `shutdown_timeout` states this limit.
pub const CLOSE_LIMIT: Duration = Duration::from_secs(20);

/// The exit status of a process that the watchdog has ended.
const EXIT_STATUS: i32 = 1;

/// A thread that ends the process some time after SIGTERM, after SIGINT, or after `stopping`
/// becomes true. The thread has a runtime of its own, so that nothing that runs elsewhere can delay
/// it.
pub struct Watchdog {
    limit: watch::Sender<Duration>,
}

impl Watchdog {
    /// Starts the thread. `limit`: the time that a stop may take.
    pub fn start(stopping: watch::Receiver<bool>, limit: Duration) -> Result<Self, String> {
        let refused = |e| format!("cannot create threads: {e}");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let stop = {
            let _inside = runtime.enter();
            let (terminate, interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
            StopSeen { terminate, interrupt, stopping }
        };
        let (limit, limit_seen) = watch::channel(limit);
        let watch = move || end_after(&runtime, stop, &limit_seen);
        thread::Builder::new().name("ombak-watchdog".into()).spawn(watch).map_err(refused)?;
        Ok(Self { limit })
    }

    /// Sets the time that a stop may take from now on. It does not apply to a stop that has begun.
    pub fn set_limit(&self, limit: Duration) {
        self.limit.send_replace(limit);
    }
}

fn listen(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|e| format!("cannot install signal handlers: {e}"))
}

/// The sources that tell the watchdog that the node was told to stop.
struct StopSeen {
    terminate: Signal,
    interrupt: Signal,
    stopping: watch::Receiver<bool>,
}

#[expect(clippy::disallowed_methods, reason = "an orderly end could hang as well")]
fn end_after(runtime: &Runtime, mut stop: StopSeen, limit: &watch::Receiver<Duration>) {
    let told = runtime.block_on(async {
        tokio::select! {
            _ = stop.terminate.recv() => true,
            _ = stop.interrupt.recv() => true,
            told = stop.stopping.wait_for(|told| *told) => told.is_ok(),
        }
    });
    if !told {
        // The node ended without being told to stop.
        return;
    }
    let limit = *limit.borrow();
    // The timer has to be created inside the runtime.
    runtime.block_on(async { tokio::time::sleep(limit).await });
    let what =
        format!("the node has not stopped within {} s: the process ends without closing its stores", limit.as_secs());
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{what}");
    } else {
        // The log is not open yet. If standard error is closed, nobody can be told.
        let _ = writeln!(std::io::stderr(), "{what}");
    }
    process::exit(EXIT_STATUS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    const CHILD: &str = "OMBAK_TEST_WATCHDOG_CHILD";
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Runs in a process of its own, which hangs after it was told to stop.
    #[test]
    fn child_that_hangs() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let (stop, stopping) = watch::channel(false);
        let _watchdog = Watchdog::start(stopping, Duration::from_millis(1)).expect("started");
        stop.send_replace(true);
        loop {
            thread::park();
        }
    }

    #[test]
    fn a_process_that_hangs_is_ended() {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", "node::watchdog::tests::child_that_hangs"])
            .env(CHILD, "1")
            .spawn()
            .expect("started");
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a state") {
                break status;
            }
            if began.elapsed() > PATIENCE {
                child.kill().expect("killed");
                panic!("the process did not end");
            }
            let pause = Duration::from_millis(10);
            thread::park_timeout(pause);
        };
        assert_eq!(status.code(), Some(EXIT_STATUS));
    }
}
