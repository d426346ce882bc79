//! A policy for tests.

use super::{Access, AccessPolicy, Session};
use parking_lot::Mutex;

/// A policy that notes every access and refuses all if it is told to.
#[derive(Debug, Default)]
pub(crate) struct NotedAccesses {
    noted: Mutex<Vec<(&'static str, String)>>,
    /// The session of the last access.
    session: Mutex<Option<Session>>,
    refused: bool,
}

impl NotedAccesses {
    /// A policy that refuses every access.
    pub(crate) fn refusing() -> Self {
        Self { refused: true, ..Self::default() }
    }

    /// The accesses since the last call: the permission, and `type/bucket`.
    pub(crate) fn take(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut *self.noted.lock())
    }

    /// The session of the last access since the last call.
    pub(crate) fn take_session(&self) -> Option<Session> {
        self.session.lock().take()
    }
}

impl AccessPolicy for NotedAccesses {
    fn check(&self, session: &Session, access: &Access<'_>) -> Result<(), String> {
        let text = |name: Option<&[u8]>| String::from_utf8_lossy(name.unwrap_or(b"-")).into_owned();
        let place = format!("{}/{}", text(access.bucket_type), text(access.bucket));
        self.noted.lock().push((access.permission.name(), place));
        *self.session.lock() = Some(session.clone());
        if self.refused { Err(format!("no {}", access.permission.name())) } else { Ok(()) }
    }
}
