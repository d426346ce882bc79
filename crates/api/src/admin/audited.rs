//! A change by administration, as the audit log has it.

use super::AdminError;
use crate::access::Proof;
use crate::http::Request;
use ombak_audit::{AuditEvent, AuditLog, EventKind, Outcome, Shown};
use percent_encoding::percent_decode_str;

/// A change that is under way. It is in the log when it has ended, and also if its client goes away
/// before that.
pub(super) struct Audited<'a> {
    log: &'a AuditLog,
    request: &'a Request,
    is_told: bool,
}

impl<'a> Audited<'a> {
    /// The change that a request asks for.
    pub(super) fn begin(log: &'a AuditLog, request: &'a Request) -> Self {
        Self { log, request, is_told: false }
    }

    /// Tells what became of it.
    pub(super) fn ended<T>(mut self, answer: &Result<T, AdminError>) {
        let why = answer.as_ref().err().map(|error| self.why(error));
        self.tell(why.as_deref().map_or(Outcome::Done, Outcome::Failed));
    }

    fn tell(&mut self, outcome: Outcome<'_>) {
        self.is_told = true;
        tell(self.log, EventKind::Administration, self.request, outcome);
    }

    /// Why it has failed. The text of an error may quote the body, and with it a password.
    fn why(&self, error: &AdminError) -> String {
        match (shows(self.request), error) {
            (Shown::NamesOfOptions, _) | (_, AdminError::BadRequest(_)) => error.kind().to_owned(),
            _ => error.to_string(),
        }
    }
}

impl Drop for Audited<'_> {
    fn drop(&mut self) {
        if !self.is_told {
            self.tell(Outcome::Unknown);
        }
    }
}

/// Tells of a request of administration that was refused.
pub(super) fn tell_refusal(log: &AuditLog, request: &Request, why: &str) {
    tell(log, EventKind::Denied, request, Outcome::Refused(why));
}

/// The commands that take passwords.
const TAKE_PASSWORDS: [&str; 4] = ["add-user", "alter-user", "add-group", "alter-group"];

/// What the log shows of the body of a request.
fn shows(request: &Request) -> Shown {
    let path = path(request);
    match path.rsplit('/').find(|part| !part.is_empty()).is_some_and(|command| TAKE_PASSWORDS.contains(&command)) {
        true => Shown::NamesOfOptions,
        false => Shown::Values,
    }
}

/// The path as the registry reads it, whichever of its characters are encoded.
fn path(request: &Request) -> String {
    percent_decode_str(request.target.path()).decode_utf8_lossy().into_owned()
}

fn tell(log: &AuditLog, kind: EventKind, request: &Request, outcome: Outcome<'_>) {
    if !log.is_on() {
        return;
    }
    let session = request.session();
    let proof = match (kind, &session.user) {
        // Without a user it was the token that has let the request in.
        (EventKind::Administration, None) => Proof::AdminToken.name(),
        _ => session.proof.name(),
    };
    let action = format!("{} {}", request.method, path(request));
    log.record(&AuditEvent {
        kind,
        place: session.place(),
        user: session.user.as_ref().map(|user| &*user.name),
        proof,
        action: &action,
        bucket: (None, None),
        outcome,
        // Who is refused does not write into the log.
        body: (kind == EventKind::Administration).then(|| (&request.body[..], shows(request))),
    });
}
