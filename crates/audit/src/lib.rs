//! The audit log: who did what from where.
//!
//! What it is: [`AuditLog::record`] takes an [`AuditEvent`], makes one line of JSON of it, and
//! hands the line to a thread that writes it. Events are refused logins, denied requests, and what
//! administration changes.
//!
//! What it is not: it does not decide what is allowed, it opens no file ([`AuditFile`] is given to
//! it), and it is no log for operators (`server/src/logging`).
//!
//! Invariants:
//! * Recording never waits for a disk. Lines wait in a bounded queue.
//! * Clients cannot fill the log: refusals have a rate for each address and one for all together.
//!   They have a file and a queue of their own, so they never displace what administration does.
//! * What is left out is counted, and a line in the log says how much it was.
//! * A line has a bounded length. A body is read when its event may be written, and not before, and
//!   what can be a password does not stand in the line.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod event;
mod figures;
mod line;
mod log;
mod rates;
mod redacted;
mod writer;

pub use event::{AuditEvent, EventKind, Outcome, Place, Shown};
pub use log::AuditLog;
pub use writer::AuditFile;
