//! How fast a round reads.

use std::time::Duration;

/// A round is never slower than this, in bytes a second: a small node is done after a few minutes,
/// and waits for the next round.
const BYTES_PER_SECOND_MIN: u64 = 64 << 10;
/// A round that is late makes up for it with at most this many times the usual rate.
const CATCH_UP_MAX: u64 = 10;
/// The bounds of one step in bytes. Within them a step is a quarter of a second's reading.
const STEP_BYTES_MIN: u64 = 64 << 10;
const STEP_BYTES_MAX: u64 = 4 << 20;
const STEPS_PER_SECOND: u64 = 4;

/// What the rate of a round depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundSoFar {
    /// Bytes of all stores.
    pub(super) all_bytes: u64,
    /// Bytes that are left to be read.
    pub(super) left_bytes: u64,
    /// How long ago the round began.
    pub(super) age: Duration,
    /// How long a round takes.
    pub(super) interval: Duration,
    /// Bytes a second; `u64::MAX`: no limit.
    pub(super) rate_max: u64,
}

/// The rate in bytes a second with which a round ends in time.
pub(super) fn rate(round: &RoundSoFar) -> u64 {
    let interval_secs = round.interval.as_secs().max(1);
    let left_secs = interval_secs.saturating_sub(round.age.as_secs()).max(1);
    let most = (round.all_bytes / interval_secs).saturating_mul(CATCH_UP_MAX);
    let wanted = (round.left_bytes / left_secs).min(most);
    wanted.max(BYTES_PER_SECOND_MIN).min(round.rate_max.max(1))
}

/// How many bytes one step reads at this rate.
pub(super) fn step_bytes(rate: u64) -> u64 {
    (rate / STEPS_PER_SECOND).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX)
}

/// How long these bytes take at this rate, in milliseconds.
pub(super) fn duration_ms(bytes: u64, rate: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1_000 / u128::from(rate.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONTH: Duration = Duration::from_secs(30 * 86_400);

    fn rate_of(all_bytes: u64, left_bytes: u64, age: Duration) -> u64 {
        rate(&RoundSoFar { all_bytes, left_bytes, age, interval: MONTH, rate_max: 20 << 20 })
    }

    #[test]
    fn a_round_ends_in_time_and_has_a_floor_and_a_ceiling() {
        let tb = 1u64 << 40;
        let usual = tb / MONTH.as_secs();
        assert_eq!(rate_of(tb, tb, Duration::ZERO), usual);
        assert_eq!(rate_of(tb, tb / 2, MONTH / 2), usual);
        assert_eq!(rate_of(1 << 20, 1 << 20, Duration::ZERO), 64 << 10);
        assert_eq!(rate_of(1000 * tb, 1000 * tb, Duration::ZERO), 20 << 20);
        assert_eq!(rate_of(tb, tb, 2 * MONTH), usual * 10, "it was off for two months");
        let slow = RoundSoFar { all_bytes: tb, left_bytes: tb, age: MONTH, interval: MONTH, rate_max: 1000 };
        assert_eq!(rate(&slow), 1000, "the ceiling goes before the floor");
    }

    #[test]
    fn steps_are_short() {
        assert_eq!((step_bytes(1), step_bytes(4 << 20), step_bytes(u64::MAX)), (64 << 10, 1 << 20, 4 << 20));
        assert_eq!((duration_ms(1 << 20, 1 << 20), duration_ms(10, u64::MAX)), (1_000, 0));
    }
}
