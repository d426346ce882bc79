//! What the audit log is told of logins and permissions.

use super::login::LoginRefused;
use crate::access::{Access, Session};
use ombak_audit::{AuditEvent, AuditLog, EventKind, Outcome};

/// A login that is under way. It is in the log if it is refused, and also if its client goes away
/// before the answer: the time without an answer tells a client as much as a no.
pub(super) struct LoginAttempt<'a> {
    log: &'a AuditLog,
    session: &'a Session,
    user: &'a str,
    has_ended: bool,
}

impl<'a> LoginAttempt<'a> {
    /// A client says that it is this user.
    pub(super) fn begin(log: &'a AuditLog, session: &'a Session, user: &'a str) -> Self {
        Self { log, session, user, has_ended: false }
    }

    /// It was refused for this reason, or it was not.
    pub(super) fn ended(mut self, refused: Option<LoginRefused>) {
        self.has_ended = true;
        if let Some(refused) = refused {
            self.tell(Outcome::Refused(refused.why()));
        }
    }

    fn tell(&self, outcome: Outcome<'_>) {
        let kind = EventKind::LoginRefused;
        self.log.record(&AuditEvent { user: Some(self.user), ..event(kind, self.session, "log in", outcome) });
    }
}

impl Drop for LoginAttempt<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.tell(Outcome::Unknown);
        }
    }
}

/// Tells that a user may not do what it asked for.
pub(super) fn denied(log: &AuditLog, session: &Session, access: &Access<'_>, why: &str) {
    let outcome = Outcome::Refused(why);
    log.record(&AuditEvent {
        bucket: (access.bucket_type, access.bucket),
        ..event(EventKind::Denied, session, access.permission.name(), outcome)
    });
}

fn event<'a>(kind: EventKind, session: &'a Session, action: &'a str, outcome: Outcome<'a>) -> AuditEvent<'a> {
    AuditEvent {
        kind,
        place: session.place(),
        user: session.user.as_ref().map(|user| &*user.name),
        proof: session.proof.name(),
        action,
        bucket: (None, None),
        outcome,
        body: None,
    }
}
