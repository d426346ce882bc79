//! The lines of many clients, within a bound.

use super::guess_key::GuessKey;
use super::guess_line::{GuessLine, Pace};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Instant;

/// How many lines are kept. When there are more, those of the fewest failures are forgotten, so
/// whoever has failed often cannot be forgotten by making others fail a few times.
const LINES_MAX: usize = 10_000;

/// The lines of many clients.
#[derive(Debug)]
pub(super) struct GuessLines {
    pace: Pace,
    lines: HashMap<GuessKey, GuessLine>,
}

impl GuessLines {
    /// No lines yet.
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, lines: HashMap::new() }
    }

    /// Takes a time in a line; `None` if too many wait already.
    pub(super) fn take(&mut self, key: &GuessKey, now: Instant) -> Option<Instant> {
        self.lines.get_mut(key).map_or(Some(now), |line| line.take(&self.pace, now))
    }

    /// Gives a time back.
    pub(super) fn give_back(&mut self, key: &GuessKey, time: Instant) {
        if let Some(line) = self.lines.get_mut(key) {
            line.give_back(time);
        }
    }

    /// A guess was wrong.
    pub(super) fn failed(&mut self, key: GuessKey, now: Instant) {
        if self.lines.len() >= LINES_MAX && !self.lines.contains_key(&key) {
            self.forget_half(now);
        }
        self.lines.entry(key).or_insert_with(|| GuessLine::new(now)).failed(&self.pace, now);
    }

    /// A guess was right: nothing is held against this client any more.
    pub(super) fn succeeded(&mut self, key: &GuessKey) {
        self.lines.remove(key);
    }

    /// How many lines there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// How many wait in a line.
    #[cfg(test)]
    pub(super) fn waiting(&self, key: &GuessKey) -> usize {
        self.lines.get(key).map_or(0, GuessLine::waiting)
    }

    /// Forgets the half that has failed least; of those that have failed as often, any.
    fn forget_half(&mut self, now: Instant) {
        let mut all: Vec<(u32, GuessKey)> =
            self.lines.iter().map(|(key, line)| (line.failures(&self.pace, now), *key)).collect();
        let half = all.len() / 2;
        all.select_nth_unstable_by_key(half, |(failures, _)| Reverse(*failures));
        for (_, key) in all.iter().skip(half) {
            self.lines.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::client_network::ClientNetwork;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn key(user: &str) -> GuessKey {
        GuessKey::of_pair(user, ClientNetwork::of(Ipv4Addr::LOCALHOST.into()))
    }

    #[test]
    fn many_light_failures_do_not_reset_a_heavy_one() {
        let (mut lines, now) = (GuessLines::new(Pace::OF_PAIR), Instant::now());
        (0..20).for_each(|_| lines.failed(key("alice"), now));
        for number in 0..5 * LINES_MAX {
            for _ in 0..number % 3 + 1 {
                lines.failed(key(&number.to_string()), now + Duration::from_millis(number as u64));
            }
            assert!(lines.len() <= LINES_MAX);
        }
        assert!(lines.take(&key("alice"), now).unwrap() > now, "alice still waits");
        assert_eq!(lines.take(&key("bob"), now), Some(now), "nobody else does");
    }

    #[test]
    fn whoever_is_new_is_counted_when_all_are_heavy() {
        let (mut lines, now) = (GuessLines::new(Pace::OF_PAIR), Instant::now());
        for number in 0..LINES_MAX {
            (0..20).for_each(|_| lines.failed(key(&number.to_string()), now));
        }
        (0..5).for_each(|_| lines.failed(key("alice"), now));
        assert!(lines.take(&key("alice"), now).unwrap() > now);
    }
}
