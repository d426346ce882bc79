//! How many bytes merging may move: a token bucket shared by all partitions of a node.

use parking_lot::Mutex;
use std::time::Instant;

/// Tokens that gather while nobody merges, in milliseconds of the rate.
const BURST_MS: u64 = 250;

pub(super) struct IoBudget {
    bytes_per_sec: u64,
    state: Mutex<(i64, Instant)>,
}

impl IoBudget {
    pub(super) fn new(bytes_per_sec: u64) -> Self {
        Self { bytes_per_sec: bytes_per_sec.max(1), state: Mutex::new((0, Instant::now())) }
    }

    /// Bytes that may be moved now.
    pub(super) fn available_bytes(&self) -> u64 {
        let mut state = self.state.lock();
        let now = Instant::now();
        let elapsed_us = now.duration_since(state.1).as_micros().min(3_600_000_000) as u64;
        state.1 = now;
        state.0 = refill(state.0, elapsed_us, self.bytes_per_sec);
        state.0.max(0) as u64
    }

    /// Accounts for bytes moved. One record may be longer than what was available: the debt is waited off.
    pub(super) fn spend(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.0 = state.0.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

fn refill(tokens: i64, elapsed_us: u64, bytes_per_sec: u64) -> i64 {
    let rate = i128::from(bytes_per_sec);
    let burst = (rate * i128::from(BURST_MS) / 1000).max(1);
    let earned = rate * i128::from(elapsed_us) / 1_000_000;
    i64::try_from((i128::from(tokens) + earned).min(burst)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earns_at_the_rate_up_to_the_burst_and_pays_debts_first() {
        assert_eq!(refill(0, 100_000, 1_000_000), 100_000);
        assert_eq!(refill(0, 60_000_000, 1_000_000), 250_000);
        assert_eq!(refill(-500_000, 200_000, 1_000_000), -300_000);
        assert_eq!(refill(i64::MIN, 1, u64::MAX), i64::MIN.saturating_add(18_446_744_073_709));
    }
}
