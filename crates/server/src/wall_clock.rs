//! The current time, for this crate. Storage code gets the time from its caller, so that tests can
//! set it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The Unix time in seconds.
#[expect(clippy::disallowed_methods, reason = "the one place of the program that asks")]
pub fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
