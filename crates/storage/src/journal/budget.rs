//! How many bytes merging may move: a token bucket that all partitions of a root share.
//!
//! Tokens come at a fixed rate, so that dead bytes are removed while nobody writes. They also come
//! with each append, so that merging keeps up with writers that overwrite faster than that. A
//! slower node is better than a disk full of dead bytes.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// The most tokens from the fixed rate, in milliseconds of that rate.
const BURST_MS: u64 = 250;

/// Bytes that may be moved for each byte appended. An overwrite leaves as many dead bytes as it
/// appends. Removing one dead byte from files of which half is live means reading one live byte and
/// writing it again.
const MOVED_PER_APPENDED: u64 = 3;

/// The most tokens that appends earn while nobody merges: the work of one round.
const EARNED_BYTES_MAX: i64 = 64 << 20;

/// Longer pauses earn no more tokens. By then the burst is full, or the debt is implausibly large.
const ELAPSED_MAX: Duration = Duration::from_secs(3600);

const NANOS_PER_SEC: i128 = 1_000_000_000;

pub(super) struct IoBudget {
    bytes_per_sec: u64,
    state: Mutex<(i64, Instant)>,
}

impl IoBudget {
    pub(super) fn new(bytes_per_sec: u64, now: Instant) -> Self {
        Self { bytes_per_sec: bytes_per_sec.max(1), state: Mutex::new((0, now)) }
    }

    /// Bytes that may be moved now.
    pub(super) fn available_bytes(&self, now: Instant) -> u64 {
        let mut state = self.state.lock();
        let elapsed = now.saturating_duration_since(state.1);
        let (tokens, paid_for) = refill(state.0, elapsed, self.bytes_per_sec);
        *state = (tokens, state.1 + paid_for);
        tokens.max(0) as u64
    }

    /// Adds the tokens that appends earn.
    pub(super) fn earn(&self, appended_bytes: u64) {
        let earned = i64::try_from(appended_bytes.saturating_mul(MOVED_PER_APPENDED)).unwrap_or(i64::MAX);
        let mut state = self.state.lock();
        if state.0 < EARNED_BYTES_MAX {
            state.0 = state.0.saturating_add(earned).min(EARNED_BYTES_MAX);
        }
    }

    /// Spends tokens for bytes that were moved. One record may be longer than the available tokens;
    /// merging then waits until the debt is paid.
    pub(super) fn spend(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.0 = state.0.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// The tokens after `elapsed`, and how much of that time they stand for. A remainder too short for
/// a token counts at the next call, however often this is called.
fn refill(tokens: i64, elapsed: Duration, bytes_per_sec: u64) -> (i64, Duration) {
    let rate = i128::from(bytes_per_sec);
    let burst = (rate * i128::from(BURST_MS) / 1000).max(1);
    let elapsed = elapsed.min(ELAPSED_MAX);
    let earned = rate * elapsed.as_nanos() as i128 / NANOS_PER_SEC;
    let paid_for_ns = (earned * NANOS_PER_SEC + rate - 1) / rate;
    let paid_for = Duration::from_nanos(u64::try_from(paid_for_ns).unwrap_or(u64::MAX)).min(elapsed);
    // Tokens that appends have earned beyond the burst stay.
    let tokens = (i128::from(tokens) + earned).min(burst.max(i128::from(tokens)));
    (i64::try_from(tokens).unwrap_or(i64::MAX), paid_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earns_at_the_rate_up_to_the_burst_and_pays_debts_first() {
        let after = |tokens, elapsed_ms, rate| refill(tokens, Duration::from_millis(elapsed_ms), rate).0;
        assert_eq!(after(0, 100, 1_000_000), 100_000);
        assert_eq!(after(0, 60_000, 1_000_000), 250_000);
        assert_eq!(after(-500_000, 200, 1_000_000), -300_000);
        assert_eq!(after(i64::MIN, 1, u64::MAX), i64::MIN + 18_446_744_073_709_551);
        assert_eq!(after(9_000_000, 60_000, 1_000_000), 9_000_000, "what appends have earned is not taken away");
    }

    #[test]
    fn appends_earn_up_to_a_bound() {
        let now = Instant::now();
        let budget = IoBudget::new(1, now);
        budget.spend(1000);
        budget.earn(1000);
        assert_eq!(budget.available_bytes(now), 2000);
        budget.earn(u64::MAX);
        assert_eq!(budget.available_bytes(now), EARNED_BYTES_MAX as u64);
    }

    #[test]
    fn time_too_short_for_a_token_is_not_lost() {
        for rate in [1, 7, 2_000_000, 3_000_000_000] {
            let (mut tokens, mut waited, mut paid_for) = (0, Duration::ZERO, Duration::ZERO);
            for _ in 0..10_000 {
                waited += Duration::from_nanos(180);
                let (now, paid) = refill(tokens, waited - paid_for, rate);
                tokens = now;
                paid_for += paid;
            }
            let due = (u128::from(rate) * waited.as_nanos() / NANOS_PER_SEC as u128) as i64;
            assert!((due - 1..=due).contains(&tokens), "{tokens} tokens at {rate} bytes a second, {due} are due");
        }
    }
}
