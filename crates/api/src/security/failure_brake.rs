//! How guessing passwords is slowed down.
//!
//! What it is: for each user at each address, a count of failures and the time at which the next
//! password may be looked at. A password that was verified before is not looked at again, so the
//! clients of a user go on while somebody else guesses. Nobody can lock out other users or other
//! addresses, because only the pair of both is slowed down.
//!
//! What it is not: it knows no passwords, and does not wait. Time is given to it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// So many failures have no consequence: people mistype.
const FREE_FAILURES: u32 = 3;
/// The wait after the first failure that counts. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait, which is the one of Riak.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// A pair that has been quiet for so long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);
/// How many pairs are kept. Beyond that, those that are quiet longest are forgotten.
const PAIRS_MAX: usize = 10_000;
/// How long somebody may have to wait in line. Beyond that the answer is no at once.
const LINE_MAX: Duration = Duration::from_secs(30);

/// The failures of pairs of a user and an address.
#[derive(Debug, Default)]
pub(super) struct FailureBrake {
    pairs: HashMap<(Box<str>, IpAddr), Pair>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    failures: u32,
    last: Instant,
    /// When the next password may be looked at.
    next: Instant,
}

impl Pair {
    fn wait(self) -> Duration {
        match self.failures.checked_sub(FREE_FAILURES + 1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_WAIT.saturating_mul(1 << doublings.min(10)).min(WAIT_MAX),
        }
    }
}

impl FailureBrake {
    /// How long the next password of a pair has to wait before it is looked at; `None` if too many
    /// wait already. Those that come at the same time wait one after the other.
    pub(super) fn take_place(&mut self, user: &str, address: IpAddr, now: Instant) -> Option<Duration> {
        let Some(pair) = self.pairs.get_mut(&(Box::from(user), address)) else { return Some(Duration::ZERO) };
        let wait = pair.next.saturating_duration_since(now);
        if wait > LINE_MAX {
            return None;
        }
        pair.next = now + wait + pair.wait();
        Some(wait)
    }

    /// How many pairs are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// A password of a pair was wrong.
    pub(super) fn failed(&mut self, user: &str, address: IpAddr, now: Instant) {
        if self.pairs.len() >= PAIRS_MAX {
            self.forget_the_quietest(now);
        }
        let pair = self.pairs.entry((user.into(), address)).or_insert(Pair { failures: 0, last: now, next: now });
        pair.failures = pair.failures.saturating_add(1);
        pair.last = now;
        pair.next = pair.next.max(now + pair.wait());
    }

    /// A password of a pair was right.
    pub(super) fn succeeded(&mut self, user: &str, address: IpAddr) {
        self.pairs.remove(&(Box::from(user), address));
    }

    /// Forgets those that are quiet, and one half of the others if there are none.
    fn forget_the_quietest(&mut self, now: Instant) {
        self.pairs.retain(|_, pair| now.saturating_duration_since(pair.last) < FORGOTTEN_AFTER);
        if self.pairs.len() < PAIRS_MAX {
            return;
        }
        let mut times: Vec<Instant> = self.pairs.values().map(|pair| pair.last).collect();
        let (_, middle, _) = times.select_nth_unstable(PAIRS_MAX / 2);
        let middle = *middle;
        self.pairs.retain(|_, pair| pair.last > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn failures_make_the_next_guesses_wait_longer_and_longer() {
        let (mut brake, mut now) = (FailureBrake::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..10 {
            let wait = brake.take_place("alice", HERE, now).unwrap();
            waits.push(wait.as_millis());
            now += wait;
            brake.failed("alice", HERE, now);
        }
        assert_eq!(waits, [0, 0, 0, 0, 250, 500, 1000, 2000, 4000, 5000]);
        brake.succeeded("alice", HERE);
        assert_eq!(brake.take_place("alice", HERE, now), Some(Duration::ZERO));
    }

    #[test]
    fn guesses_at_the_same_time_wait_in_line_and_the_line_is_short() {
        let (mut brake, now) = (FailureBrake::default(), Instant::now());
        for _ in 0..20 {
            brake.failed("alice", HERE, now);
        }
        let waits: Vec<_> = std::iter::from_fn(|| brake.take_place("alice", HERE, now)).take(100).collect();
        assert_eq!(waits.len(), 6, "{waits:?}");
        assert!(waits.windows(2).all(|two| two[1] - two[0] == WAIT_MAX));
    }

    #[test]
    fn nobody_else_waits() {
        let (mut brake, now) = (FailureBrake::default(), Instant::now());
        for _ in 0..20 {
            brake.failed("alice", HERE, now);
        }
        assert_eq!(brake.take_place("bob", HERE, now), Some(Duration::ZERO));
        assert_eq!(brake.take_place("alice", THERE, now), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_newest_stay() {
        let (mut brake, start) = (FailureBrake::default(), Instant::now());
        for number in 0..3 * PAIRS_MAX {
            let now = start + Duration::from_millis(number as u64);
            for _ in 0..5 {
                brake.failed(&number.to_string(), HERE, now);
            }
            assert!(brake.pairs.len() <= PAIRS_MAX);
            assert!(brake.take_place(&number.to_string(), HERE, now).unwrap() > Duration::ZERO);
        }
    }
}
