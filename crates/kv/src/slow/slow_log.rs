//! Decides which requests are slow, counts them, and logs them.

use super::request_kind::RequestKind;
use super::slow_request::SlowRequest;
use ombak_stats::{Feature, Figure, Number, Sum};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The limit with which no request is slow.
const OFF_US: u64 = u64::MAX;

/// The log of slow requests. Any thread may ask it; a request that is not slow costs one load.
#[derive(Debug)]
pub(crate) struct SlowLog {
    /// Requests that take this long or longer are slow.
    limit_us: AtomicU64,
    counts: [Sum; RequestKind::ALL.len()],
}

impl SlowLog {
    /// A log of requests that take this long or longer; `None`: of none.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit_us: AtomicU64::new(limit_us(limit)), counts: Default::default() }
    }

    /// Changes the limit for requests that end from now on.
    pub(crate) fn set_limit(&self, limit: Option<Duration>) {
        self.limit_us.store(limit_us(limit), Relaxed);
    }

    /// Whether any request can be slow. If not, requests need not measure their parts.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.limit_us.load(Relaxed) != OFF_US
    }

    #[inline]
    pub(crate) fn is_slow(&self, took_us: u64) -> bool {
        took_us >= self.limit_us.load(Relaxed)
    }

    /// Counts and logs a slow request.
    #[cold]
    pub(crate) fn note(&self, request: &SlowRequest<'_>) {
        self.counts[request.kind as usize].add(1);
        request.log();
    }

    /// The number of slow requests since the start.
    pub(crate) fn count(&self, kind: RequestKind) -> u64 {
        self.counts[kind as usize].get()
    }
}

impl Feature for SlowLog {
    fn figures(&self) -> Vec<Figure<'_>> {
        let figure = |kind: RequestKind| Figure {
            name: format!("ombak_slow_{}", kind.name()),
            metric: "slow_requests_total",
            label: Some(("operation", kind.name())),
            help: "Requests that took at least as long as log.slow_request.",
            number: Number::Total(self.count(kind)),
        };
        RequestKind::ALL.into_iter().map(figure).collect()
    }
}

/// A limit of zero means that there is none, as in the configuration.
fn limit_us(limit: Option<Duration>) -> u64 {
    let limit = limit.filter(|limit| !limit.is_zero());
    limit.map_or(OFF_US, |limit| u64::try_from(limit.as_micros()).unwrap_or(OFF_US).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_and_zero_is_off() {
        let log = SlowLog::new(Some(Duration::from_millis(5)));
        assert!(log.is_on() && log.is_slow(5_000) && !log.is_slow(4_999));
        log.set_limit(Some(Duration::ZERO));
        assert!(!log.is_on() && !log.is_slow(u64::MAX - 1));
        log.set_limit(None);
        assert!(!log.is_on());
    }
}
