//! The clocks of an engine.

use ombak_types::time::UnixMicros;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the current time of day. The stamps of writes and expiry use it. Tests pass a clock of
/// their own.
pub type WallClock = Arc<dyn Fn() -> UnixMicros + Send + Sync>;

/// Returns a time that never goes back, whatever happens to the wall clock. Deadlines use it. Tests
/// pass a clock of their own.
pub type MonotonicClock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The monotonic clock of the machine.
pub fn system_monotonic_clock() -> MonotonicClock {
    Arc::new(Instant::now)
}

/// The wall clock of the machine.
pub fn system_clock() -> WallClock {
    Arc::new(now)
}

#[expect(clippy::disallowed_methods, reason = "the engine reads the clock here, for everything below it")]
fn now() -> UnixMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
