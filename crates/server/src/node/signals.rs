//! Signals: SIGTERM and SIGINT stop a node. SIGHUP makes it reopen its logs, and read its
//! certificates again.

use super::{certificates, client_tls};
use crate::logging::Log;
use ombak_audit::AuditLog;
use ombak_tls::Certificates;
use ombak_tls::clients::ClientCertificates;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a node handles. From [`Signals::listen`] on, none of them ends the process by
/// itself.
pub struct Signals {
    /// The signals that stop a node.
    pub stop: StopSignals,
    hangup: Signal,
}

/// The signals SIGTERM and SIGINT.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs the handlers of the signals.
    pub fn listen(runtime: &Runtime) -> Result<Self, String> {
        let _guard = runtime.enter();
        let listen = |kind| signal(kind).map_err(|e| format!("cannot install signal handlers: {e}"));
        Ok(Self {
            stop: StopSignals {
                terminate: listen(SignalKind::terminate())?,
                interrupt: listen(SignalKind::interrupt())?,
            },
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// From now on, reopens the logs at each SIGHUP, and reads the certificates again: those for
    /// other nodes and those for clients.
    pub fn renew_on_hangup(
        self,
        runtime: &Runtime,
        (log, audit): (Log, AuditLog),
        certificates: Option<Arc<Certificates>>,
        for_clients: Option<Arc<ClientCertificates>>,
    ) -> StopSignals {
        let mut hangup = self.hangup;
        runtime.spawn(async move {
            while hangup.recv().await.is_some() {
                match log.reopen() {
                    Ok(()) => tracing::info!("the log was reopened on SIGHUP"),
                    Err(error) => {
                        tracing::error!(%error, "the log cannot be reopened; the node keeps writing to the old file")
                    }
                }
                audit.reopen();
                if let Some(certificates) = &certificates {
                    certificates::read_again(certificates);
                }
                if let Some(certificates) = &for_clients {
                    client_tls::read_again(certificates);
                }
            }
        });
        self.stop
    }
}

impl StopSignals {
    /// The name of a signal that has already arrived.
    pub async fn already_received(&mut self) -> Option<&'static str> {
        tokio::select! {
            biased;
            signal = self.received() => Some(signal),
            () = std::future::ready(()) => None,
        }
    }

    /// Waits for the next of these signals and returns its name.
    pub async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
