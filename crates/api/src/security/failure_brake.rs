//! How guessing passwords is slowed down.
//!
//! What it is: failures are counted for each user in each network, and for each network. A guess
//! takes a [`GuessPlace`], which says when it may be looked at, and what comes of it is counted
//! when the place is dropped.
//!
//! What it is not: it knows no passwords, and does not wait. A password that was verified before is
//! not looked at again, so the clients of a user go on while somebody else guesses.
//!
//! Invariants:
//! * Nobody can lock out users in other networks.
//! * Behind an address that many share, the failures of one user delay others by at most five
//!   seconds, and those that have logged in from there not at all.
//! * A place that nobody waits for any more is free again. A password that was looked at counts,
//!   even if its client has gone meanwhile.

use super::client_network::ClientNetwork;
use super::guess_key::GuessKey;
use super::guess_line::Pace;
use super::guess_lines::GuessLines;
use super::proven_pairs::ProvenPairs;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// Counts the failures of all clients.
#[derive(Debug)]
pub(super) struct FailureBrake(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    pairs: GuessLines,
    networks: GuessLines,
    proven: ProvenPairs,
    #[cfg(test)]
    looked_at: usize,
}

impl Default for FailureBrake {
    fn default() -> Self {
        Self(Mutex::new(Counts {
            pairs: GuessLines::new(Pace::OF_PAIR),
            networks: GuessLines::new(Pace::OF_NETWORK),
            proven: ProvenPairs::default(),
            #[cfg(test)]
            looked_at: 0,
        }))
    }
}

impl FailureBrake {
    /// A place for a guess; `None` if too many wait already.
    pub(super) fn take_place(self: &Arc<Self>, user: &str, network: ClientNetwork, now: Instant) -> Option<GuessPlace> {
        let (of_pair, of_network) = (GuessKey::of_pair(user, network), GuessKey::of_network(network));
        let mut counts = self.0.lock();
        let is_proven = counts.proven.has(user, network);
        let in_pair = counts.pairs.take(&of_pair, now)?;
        let in_network = match is_proven {
            true => Some(now),
            false => counts.networks.take(&of_network, now),
        };
        let Some(in_network) = in_network else {
            counts.pairs.give_back(&of_pair, in_pair);
            return None;
        };
        let (brake, user) = (Arc::clone(self), user.into());
        let (of_pair, of_network) = ((of_pair, in_pair), (of_network, in_network));
        Some(GuessPlace { brake, user, network, of_pair, of_network, is_proven, state: State::Waits })
    }

    /// A user has proved who it is from a network.
    pub(super) fn proved(&self, user: &str, network: ClientNetwork) {
        self.0.lock().proven.note(user, network);
    }

    /// How many guesses were looked at.
    #[cfg(test)]
    pub(super) fn looked_at(&self) -> usize {
        self.0.lock().looked_at
    }

    /// For how many users and networks guesses are counted.
    #[cfg(test)]
    pub(super) fn pairs(&self) -> usize {
        self.0.lock().pairs.len()
    }

    /// How many guesses for a user from a network wait or are being looked at.
    #[cfg(test)]
    pub(super) fn waiting(&self, user: &str, network: ClientNetwork) -> usize {
        self.0.lock().pairs.waiting(&GuessKey::of_pair(user, network))
    }
}

/// The place of a guess. What has come of it is counted when it is dropped.
#[derive(Debug)]
pub(super) struct GuessPlace {
    brake: Arc<FailureBrake>,
    user: Box<str>,
    network: ClientNetwork,
    of_pair: (GuessKey, Instant),
    of_network: (GuessKey, Instant),
    is_proven: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    /// It counts as a failure, unless it turns out to be right. Then a check that ends in a panic
    /// counts, too.
    LookedAt,
    Right,
}

impl GuessPlace {
    /// When the guess may be looked at.
    pub(super) fn time(&self) -> Instant {
        self.of_pair.1.max(self.of_network.1)
    }

    /// Whether the user has logged in from this network before.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// The key under which checks of this client take turns with those of others. Of strangers, a
    /// network has one turn, because names cost nothing.
    pub(super) fn turn_key(&self) -> GuessKey {
        if self.is_proven { self.of_pair.0 } else { self.of_network.0 }
    }

    /// The guess is looked at now.
    pub(super) fn looked_at(&mut self) {
        self.state = State::LookedAt;
        #[cfg(test)]
        {
            self.brake.0.lock().looked_at += 1;
        }
    }

    /// The guess was right.
    pub(super) fn was_right(mut self) {
        self.state = State::Right;
    }
}

impl Drop for GuessPlace {
    fn drop(&mut self) {
        let mut counts = self.brake.0.lock();
        match self.state {
            State::Waits => {}
            State::LookedAt => {
                let now = Instant::now();
                counts.pairs.failed(self.of_pair.0, now);
                counts.networks.failed(self.of_network.0, now);
            }
            State::Right => {
                counts.pairs.succeeded(&self.of_pair.0);
                counts.proven.note(&self.user, self.network);
            }
        }
        counts.pairs.give_back(&self.of_pair.0, self.of_pair.1);
        counts.networks.give_back(&self.of_network.0, self.of_network.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn take(brake: &Arc<FailureBrake>, user: &str, address: IpAddr) -> Option<GuessPlace> {
        brake.take_place(user, ClientNetwork::of(address), Instant::now())
    }

    /// How long the next guess waits; `None` if it is refused.
    fn wait(brake: &Arc<FailureBrake>, user: &str, address: IpAddr) -> Option<Duration> {
        Some(take(brake, user, address)?.time().saturating_duration_since(Instant::now()))
    }

    fn fail(brake: &Arc<FailureBrake>, user: &str, address: IpAddr) {
        take(brake, user, address).unwrap().looked_at();
    }

    #[test]
    fn failures_for_a_user_slow_down_this_user_there_until_it_proves_who_it_is() {
        let brake = Arc::new(FailureBrake::default());
        (0..20).for_each(|_| fail(&brake, "alice", HERE));
        assert!(wait(&brake, "alice", HERE).unwrap() > Duration::from_secs(4));
        assert_eq!(wait(&brake, "bob", HERE), Some(Duration::ZERO));
        assert_eq!(wait(&brake, "alice", THERE), Some(Duration::ZERO));
        take(&brake, "alice", HERE).unwrap().was_right();
        assert_eq!(wait(&brake, "alice", HERE), Some(Duration::ZERO));
    }

    #[test]
    fn a_network_that_guesses_for_many_users_is_slowed_down_but_for_those_that_have_logged_in() {
        let brake = Arc::new(FailureBrake::default());
        take(&brake, "alice", HERE).unwrap().was_right();
        (0..1000).for_each(|number| fail(&brake, &number.to_string(), HERE));
        assert!(wait(&brake, "bob", HERE).unwrap() > Duration::ZERO);
        assert_eq!(wait(&brake, "alice", HERE), Some(Duration::ZERO));
        assert_eq!(wait(&brake, "bob", THERE), Some(Duration::ZERO));
        // Those who come together wait, and nobody waits long.
        let places: Vec<_> = std::iter::from_fn(|| take(&brake, "carol", HERE)).take(1000).collect();
        assert!((10..100).contains(&places.len()), "{}", places.len());
        let last = places.iter().map(GuessPlace::time).max().unwrap();
        assert!(last <= Instant::now() + Pace::OF_NETWORK.wait_max);
        assert_eq!(wait(&brake, "dora", HERE), None);
        assert_eq!(brake.waiting("dora", ClientNetwork::of(HERE)), 0, "whoever is refused keeps no place");
        drop(places);
        assert!(wait(&brake, "dora", HERE).is_some());
    }

    #[test]
    fn only_a_password_that_was_looked_at_counts() {
        let brake = Arc::new(FailureBrake::default());
        (0..20).for_each(|_| fail(&brake, "alice", HERE));
        let all: Vec<_> = std::iter::from_fn(|| take(&brake, "alice", HERE)).collect();
        assert!(all.len() > 1);
        assert_eq!(wait(&brake, "alice", HERE), None);
        let first = all[0].time();
        drop(all);
        assert_eq!(take(&brake, "alice", HERE).unwrap().time(), first, "their places are free again");
        assert_eq!(brake.waiting("alice", ClientNetwork::of(HERE)), 0);
        (0..20).for_each(|_| drop(take(&brake, "bob", HERE)));
        assert_eq!(wait(&brake, "bob", HERE), Some(Duration::ZERO));
    }
}
