//! The clocks of an engine.

use ombak_types::time::UnixMicros;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Says what time it is: stamps of writes and expiry go by it. Tests hand in one of their own.
pub type WallClock = Arc<dyn Fn() -> UnixMicros + Send + Sync>;

/// Says how much time has passed, whatever becomes of the wall clock: deadlines go by it. Tests hand in one of their own.
pub type MonotonicClock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The monotonic clock of the machine.
pub fn system_monotonic_clock() -> MonotonicClock {
    Arc::new(Instant::now)
}

/// The clock of the machine.
pub fn system_clock() -> WallClock {
    Arc::new(now)
}

#[expect(clippy::disallowed_methods, reason = "the engine reads the clock here, for everything below it")]
fn now() -> UnixMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
