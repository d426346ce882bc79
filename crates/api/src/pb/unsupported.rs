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
    Handler::bare(code::AAE_MERGE_ROOT_NVAL_REQ, not_supported),
    Handler::bare(code::AAE_MERGE_BRANCH_NVAL_REQ, not_supported),
    Handler::bare(code::AAE_FETCH_CLOCKS_NVAL_REQ, not_supported),
    Handler::bare(code::AAE_MERGE_TREES_RANGE_REQ, not_supported),
    Handler::bare(code::AAE_FETCH_CLOCKS_RANGE_REQ, not_supported),
    Handler::bare(code::AAE_FIND_KEYS_REQ, not_supported),
    Handler::bare(code::AAE_OBJECT_STATS_REQ, not_supported),
    Handler::bare(code::AAE_REPL_KEYS_REQ, not_supported),
    Handler::bare(code::AAE_FIND_TOMBS_REQ, not_supported),
    Handler::bare(code::AAE_REPAIR_KEYS_REQ, not_supported),
    Handler::bare(code::AAE_LIST_BUCKETS_REQ, not_supported),
    Handler::bare(code::AAE_REAP_TOMBS_REQ, not_supported),
    Handler::bare(code::AAE_ERASE_KEYS_REQ, not_supported),
];

fn queue(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::new("queue_not_defined"))
}

fn not_supported(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::new("not_supported"))
}
