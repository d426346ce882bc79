//! What the audit log is told of logins and permissions.

use super::login::LoginRefused;
use crate::access::{Access, Session};
use ombak_audit::{AuditEvent, AuditLog, EventKind, Outcome};

/// Tells that a client is not the user whom it names.
pub(super) fn login_refused(log: &AuditLog, session: &Session, user: &str, refused: LoginRefused) {
    log.record(&AuditEvent {
        kind: EventKind::LoginRefused,
        place: session.place(),
        user: Some(user),
        proof: session.proof.name(),
        action: "log in",
        bucket: (None, None),
        outcome: Outcome::Refused(refused.why()),
        detail: None,
    });
}

/// Tells that a user may not do what it asked for.
pub(super) fn denied(log: &AuditLog, session: &Session, access: &Access<'_>, why: &str) {
    log.record(&AuditEvent {
        kind: EventKind::Denied,
        place: session.place(),
        user: session.user.as_ref().map(|user| &*user.name),
        proof: session.proof.name(),
        action: access.permission.name(),
        bucket: (access.bucket_type, access.bucket),
        outcome: Outcome::Refused(why),
        detail: None,
    });
}
