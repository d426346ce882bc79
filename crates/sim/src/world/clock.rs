//! The virtual clock of a world.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of day at which each world begins, in microseconds since 1970.
const BEGIN_UNIX_US: u64 = 1_750_000_000_000_000;

/// The moment at which all worlds of this process begin. Only differences between moments mean
/// anything to the code that is simulated, so its value has no influence.
fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now)
}

/// Nanoseconds since the world began.
pub(crate) struct Clock {
    now_ns: AtomicU64,
    base: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { now_ns: AtomicU64::new(0), base: base() }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, now_ns: u64) {
        self.now_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Instant {
        self.base + Duration::from_nanos(self.now_ns())
    }

    pub(crate) fn ns_of(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.base).as_nanos()).unwrap_or(u64::MAX)
    }

    /// The true time of day, from which the clocks of hosts differ.
    pub(crate) fn unix_us(&self) -> u64 {
        BEGIN_UNIX_US + self.now_ns() / 1000
    }
}
