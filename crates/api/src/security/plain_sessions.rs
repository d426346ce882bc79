//! The end of plain sessions when security is switched on.

use super::node_security::NodeSecurity;
use tokio::sync::watch;

/// The plain sessions of one listener that began while security was as it is. They get a stop
/// signal of their own, so they answer what they have begun and end.
pub(crate) struct PlainSessions {
    signal: watch::Sender<bool>,
    turns: Option<watch::Receiver<bool>>,
}

impl PlainSessions {
    pub(crate) fn new(security: Option<&NodeSecurity>) -> Self {
        Self { signal: watch::Sender::new(false), turns: security.map(|security| security.switch().turns()) }
    }

    /// The stop signal of a session that begins.
    pub(crate) fn signal(&self) -> watch::Receiver<bool> {
        self.signal.subscribe()
    }

    /// Waits until security is switched on.
    pub(crate) async fn must_end(&mut self) {
        let Some(turns) = &mut self.turns else { return std::future::pending().await };
        loop {
            if turns.changed().await.is_err() {
                return std::future::pending().await;
            }
            if *turns.borrow_and_update() {
                return;
            }
        }
    }

    /// Ends the sessions that have begun. Those that begin later are others.
    pub(crate) fn end(&mut self) {
        self.signal.send_replace(true);
        self.signal = watch::Sender::new(false);
    }
}
