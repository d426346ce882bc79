//! Messages of features that this server does not have. Each gets the error that Riak returns if
//! the feature is switched off, not loaded or not supported. No such message ends the connection.
//!
//! A feature that comes to exist registers its messages in a module of its own, and they leave this
//! one.

use super::handler::{Exchange, Handler};
use super::refusal::Refusal;
use ombak_proto::code;

/// The messages that are refused.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::bare(code::FETCH_REQ, queue),
    Handler::bare(code::PUSH_REQ, queue),
    Handler::bare(code::MEMBERSHIP_REQ, not_supported),
];

fn queue(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::new("queue_not_defined"))
}

fn not_supported(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::new("not_supported"))
}
