//! Common parts of long work on a stopped node: a progress bar, and a flag with which Ctrl-C ends
//! the work at a safe place.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that a second Ctrl-C has ended.
const EXIT_INTERRUPTED: i32 = 130;

/// A progress bar for this number of bytes. It is shown only if standard error is a terminal.
pub fn progress_bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let template = "{bar:30} {bytes}/{total_bytes} {msg}, {bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user interrupted twice and does not want to wait; everything that matters is already synced to disk"
)]
fn end_at_once() -> ! {
    std::process::exit(EXIT_INTERRUPTED)
}

/// A flag that becomes true at the first Ctrl-C or SIGTERM. A second signal ends the program at
/// once.
pub fn interrupt_flag() -> Result<Arc<AtomicBool>, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let refused = |e: std::io::Error| format!("cannot install signal handlers: {e}");
    let flag = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
    let (mut interrupt, mut terminate) = {
        let _guard = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(refused)?, signal(SignalKind::terminate()).map_err(refused)?)
    };
    let turned = Arc::clone(&flag);
    let wait = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if turned.swap(true, Ordering::Relaxed) {
                    end_at_once();
                }
            }
        });
    };
    std::thread::Builder::new().name("ombak-signals".into()).spawn(wait).map_err(refused)?;
    Ok(flag)
}
