//! The time of day, which is written to objects and index entries.

use ombak_types::time::UnixMicros;
use std::time::{SystemTime, UNIX_EPOCH};

/// The current time.
#[expect(clippy::disallowed_methods, reason = "the program's edge: what is written says when")]
pub fn unix_now() -> UnixMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
