//! Signals that end a node.

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT. From [`StopSignals::listen`] on they no longer end the process by themselves.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Takes the signals over.
    pub fn listen(runtime: &Runtime) -> Result<Self, String> {
        let _guard = runtime.enter();
        let listen = |kind| signal(kind).map_err(|e| format!("the operating system refuses signal handlers: {e}"));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Waits for the next one and returns its name.
    pub async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
