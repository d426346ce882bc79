//! The wall clock of an engine.

use ombak_types::time::UnixMicros;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Says what time it is: stamps of writes and expiry go by it. Tests hand in one of their own.
pub type WallClock = Arc<dyn Fn() -> UnixMicros + Send + Sync>;

/// The clock of the machine.
pub fn system_clock() -> WallClock {
    Arc::new(now)
}

#[expect(clippy::disallowed_methods, reason = "the engine reads the clock here, for everything below it")]
fn now() -> UnixMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
