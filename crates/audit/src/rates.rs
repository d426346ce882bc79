//! How many events may be written: a decision without a clock.

use crate::event::EventKind;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// How many refusals one address may cause at once, and the time until it may cause another one.
const OF_ADDRESS: Rate = Rate { burst: 20, interval: Duration::from_secs(5) };
/// The same for all refusals together.
const OF_REFUSALS: Rate = Rate { burst: 500, interval: Duration::from_millis(200) };
/// The same for what administration does.
const OF_CHANGES: Rate = Rate { burst: 2_000, interval: Duration::from_millis(20) };
/// How many addresses have a count of their own. Further ones share one.
const ADDRESSES_MAX: usize = 4_096;
/// How often those are looked for that are quiet again.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

struct Rate {
    burst: u32,
    interval: Duration,
}

/// What may be written now.
#[derive(Default)]
pub(crate) struct Rates {
    of_changes: Allowance,
    of_refusals: Allowance,
    of_addresses: HashMap<IpAddr, Allowance>,
    of_further_addresses: Allowance,
    sweep_due: Duration,
}

/// How many events have been written lately: each interval takes one away.
#[derive(Clone, Copy, Default)]
struct Allowance {
    used: u32,
    /// The time up to which `used` was reduced.
    since: Duration,
}

impl Allowance {
    fn reduce(&mut self, rate: &Rate, now: Duration) {
        let passed = now.saturating_sub(self.since).as_millis() / rate.interval.as_millis();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        if passed >= self.used {
            *self = Self { used: 0, since: now };
        } else {
            *self = Self { used: self.used - passed, since: self.since + rate.interval * passed };
        }
    }

    fn take(&mut self, rate: &Rate, now: Duration) -> bool {
        self.reduce(rate, now);
        let is_left = self.used < rate.burst;
        self.used += u32::from(is_left);
        is_left
    }
}

impl Rates {
    /// Whether an event of an address may be written. `now` counts from any instant.
    pub(crate) fn admit(&mut self, kind: EventKind, address: IpAddr, now: Duration) -> bool {
        if !kind.is_refusal() {
            return self.of_changes.take(&OF_CHANGES, now);
        }
        // An address that has used up its own leaves what is for all to the others.
        self.of_address(address, now).take(&OF_ADDRESS, now) && self.of_refusals.take(&OF_REFUSALS, now)
    }

    fn of_address(&mut self, address: IpAddr, now: Duration) -> &mut Allowance {
        let key = network(address);
        if self.of_addresses.len() >= ADDRESSES_MAX && !self.of_addresses.contains_key(&key) {
            self.sweep(now);
            if self.of_addresses.len() >= ADDRESSES_MAX {
                return &mut self.of_further_addresses;
            }
        }
        self.of_addresses.entry(key).or_default()
    }

    /// Forgets addresses that are quiet again.
    fn sweep(&mut self, now: Duration) {
        if now < self.sweep_due {
            return;
        }
        self.sweep_due = now + SWEEP_INTERVAL;
        self.of_addresses.retain(|_, allowance| {
            allowance.reduce(&OF_ADDRESS, now);
            allowance.used > 0
        });
    }
}

/// The address, or the network of an IPv6 address: one host has 2^64 of these.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn v4(number: u32) -> IpAddr {
        Ipv4Addr::from(number).into()
    }

    fn admitted(rates: &mut Rates, kind: EventKind, address: IpAddr, count: u32, now: Duration) -> u32 {
        (0..count).map(|_| u32::from(rates.admit(kind, address, now))).sum()
    }

    #[test]
    fn one_address_does_not_use_up_what_others_may_cause() {
        let (mut rates, now) = (Rates::default(), Duration::from_secs(100));
        assert_eq!(admitted(&mut rates, EventKind::Denied, v4(1), 100_000, now), OF_ADDRESS.burst);
        assert_eq!(admitted(&mut rates, EventKind::Denied, v4(2), 1, now), 1);
        let later = now + OF_ADDRESS.interval * 3;
        assert_eq!(admitted(&mut rates, EventKind::Denied, v4(1), 100, later), 3);
    }

    #[test]
    fn many_addresses_have_a_bound_together_and_leave_administration_alone() {
        let (mut rates, now) = (Rates::default(), Duration::from_secs(100));
        let all: u32 = (0..10_000).map(|from| admitted(&mut rates, EventKind::LoginRefused, v4(from), 5, now)).sum();
        assert_eq!(all, OF_REFUSALS.burst);
        assert!(rates.of_addresses.len() <= ADDRESSES_MAX);
        assert_eq!(admitted(&mut rates, EventKind::Administration, v4(1), 100, now), 100);
        assert_eq!(admitted(&mut rates, EventKind::Administration, v4(1), 10_000, now), OF_CHANGES.burst - 100);
    }

    #[test]
    fn addresses_that_are_quiet_again_make_room() {
        let mut rates = Rates::default();
        for from in 0..20_000 {
            assert!(rates.admit(EventKind::Denied, v4(from), Duration::from_secs(u64::from(from))), "{from}");
        }
        assert!(rates.of_addresses.len() <= ADDRESSES_MAX);
    }

    #[test]
    fn a_host_with_many_addresses_counts_as_one() {
        let (mut rates, now) = (Rates::default(), Duration::from_secs(100));
        let of_host = |number: u128| IpAddr::from(Ipv6Addr::from((0x2001_0db8_u128 << 96) | number));
        let all: u32 = (0..1_000).map(|host| admitted(&mut rates, EventKind::Denied, of_host(host), 1, now)).sum();
        assert_eq!(all, OF_ADDRESS.burst);
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(network(mapped), IpAddr::from([10, 0, 0, 1]));
    }
}
