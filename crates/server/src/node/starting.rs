//! The first step of a start: it takes over the signals.
//!
//! From then on a signal ends the node in order, whatever the start is doing. The log has a line
//! about it, and the exit status is 0. A signal can arrive earlier, while the system loads the
//! program or the program reads its arguments. It ends the process without a message. At that time
//! the process has not opened any file of the node.

use super::signals::Signals;
use super::watchdog::{self, Watchdog};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// A start that has taken over the signals and has done nothing else.
pub struct Starting {
    pub(super) runtime: Runtime,
    pub(super) signals: Signals,
    /// Becomes true when the node is told to stop.
    pub(super) stop: watch::Sender<bool>,
    /// Ends the process if the start hangs after a signal, for example because the configuration is
    /// on a disk that does not respond.
    pub(super) watchdog: Watchdog,
}

impl Starting {
    /// Takes over the signals. The error is one line for the operator.
    pub fn begin() -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|e| format!("cannot create threads: {e}"))?;
        let signals = Signals::listen(&runtime)?;
        let (stop, stopping) = watch::channel(false);
        let watchdog = Watchdog::start(stopping, watchdog::CLOSE_LIMIT)?;
        Ok(Self { runtime, signals, stop, watchdog })
    }
}
