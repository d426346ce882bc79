//! Instants as plain numbers. Only the engine reads the clock; it passes the time to everything
//! below it.

/// Seconds between year 0 of the Gregorian calendar and the Unix epoch. Year 0 is the origin of the
/// timestamps in Riak's clocks (docs/riak/backends.md §7.1).
pub const GREGORIAN_OFFSET_SECS: u64 = 62_167_219_200;

/// Microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMicros(pub u64);

impl UnixMicros {
    /// Creates an instant from whole seconds since the Unix epoch.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Whole seconds since the Unix epoch.
    pub const fn secs(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The microsecond part, below one million.
    pub const fn subsec_us(self) -> u32 {
        (self.0 % 1_000_000) as u32
    }

    /// Gregorian seconds, the unit of timestamps in clocks.
    pub(crate) const fn gregorian_secs(self) -> u64 {
        self.secs() + GREGORIAN_OFFSET_SECS
    }
}
