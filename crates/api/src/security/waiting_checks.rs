//! In which order checks of passwords are made.

use super::guess_key::GuessKey;
use std::collections::{HashMap, VecDeque};

/// How many checks wait in a lane.
pub(super) const LANE_MAX: usize = 256;
/// How many checks of one client wait in a lane.
pub(super) const OF_CLIENT_MAX: usize = 64;

/// Who asks for a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// Whether this client has proved before who it is. Such clients have a lane of their own.
    pub(super) is_proven: bool,
    /// Which client it is.
    pub(super) key: GuessKey,
}

/// A check that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    client: Client,
    number: u64,
}

/// The checks that wait. The clients of a lane come in turns, and so do both lanes. So whoever asks
/// for many checks waits for its own, and strangers never keep those waiting who have logged in
/// before.
#[derive(Debug)]
pub(super) struct WaitingChecks<T> {
    strangers: Lane<T>,
    proven: Lane<T>,
    /// Whether the last check was one of the lane of proven clients.
    was_proven: bool,
    number: u64,
}

#[derive(Debug)]
struct Lane<T> {
    /// The checks of each client that waits, by their numbers.
    clients: HashMap<GuessKey, VecDeque<(u64, T)>>,
    /// Whose turn it is.
    turns: VecDeque<GuessKey>,
    length: usize,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { clients: HashMap::new(), turns: VecDeque::new(), length: 0 }
    }
}

impl<T> Default for WaitingChecks<T> {
    fn default() -> Self {
        Self { strangers: Lane::default(), proven: Lane::default(), was_proven: false, number: 0 }
    }
}

/// What became of a check that was added.
#[derive(Debug)]
pub(super) enum Added<T> {
    /// It waits. The other one, of the client that has most checks, has to go for it.
    Waits(Ticket, Option<T>),
    /// There is no room for it.
    Refused(T),
}

impl<T> WaitingChecks<T> {
    /// Adds a check. In a full lane it takes the place of the newest one of the client that has
    /// most, if its own client has fewer.
    pub(super) fn add(&mut self, client: Client, check: T) -> Added<T> {
        self.number += 1;
        let (number, lane) = (self.number, self.lane(client.is_proven));
        let own = lane.of(&client.key);
        if own >= OF_CLIENT_MAX {
            return Added::Refused(check);
        }
        let mut displaced = None;
        if lane.length >= LANE_MAX {
            match lane.busiest() {
                Some((other, checks)) if checks > own + 1 => displaced = lane.remove_newest(&other),
                _ => return Added::Refused(check),
            }
        }
        lane.push(client.key, number, check);
        Added::Waits(Ticket { client, number }, displaced)
    }

    /// Takes the check that is next.
    pub(super) fn take(&mut self) -> Option<T> {
        let proven_first = !self.was_proven;
        let (first, second) = match proven_first {
            true => (&mut self.proven, &mut self.strangers),
            false => (&mut self.strangers, &mut self.proven),
        };
        let taken = first.pop();
        self.was_proven = proven_first == taken.is_some();
        taken.or_else(|| second.pop())
    }

    /// Takes back a check; `None` if it waits no more.
    pub(super) fn remove(&mut self, ticket: &Ticket) -> Option<T> {
        self.lane(ticket.client.is_proven).remove(&ticket.client.key, ticket.number)
    }

    /// How many checks wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.strangers.length + self.proven.length
    }

    fn lane(&mut self, is_proven: bool) -> &mut Lane<T> {
        if is_proven { &mut self.proven } else { &mut self.strangers }
    }
}

impl<T> Lane<T> {
    fn of(&self, client: &GuessKey) -> usize {
        self.clients.get(client).map_or(0, VecDeque::len)
    }

    fn busiest(&self) -> Option<(GuessKey, usize)> {
        self.clients.iter().map(|(client, checks)| (*client, checks.len())).max_by_key(|(_, checks)| *checks)
    }

    fn push(&mut self, client: GuessKey, number: u64, check: T) {
        let checks = self.clients.entry(client).or_default();
        if checks.is_empty() {
            self.turns.push_back(client);
        }
        checks.push_back((number, check));
        self.length += 1;
    }

    /// Takes the oldest check of the client whose turn it is.
    fn pop(&mut self) -> Option<T> {
        let client = self.turns.pop_front()?;
        let checks = self.clients.get_mut(&client)?;
        let (_, check) = checks.pop_front()?;
        if checks.is_empty() {
            self.clients.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        self.length -= 1;
        Some(check)
    }

    fn remove_newest(&mut self, client: &GuessKey) -> Option<T> {
        let (number, _) = self.clients.get(client)?.back()?;
        self.remove(client, *number)
    }

    fn remove(&mut self, client: &GuessKey, number: u64) -> Option<T> {
        let checks = self.clients.get_mut(client)?;
        let place = checks.iter().position(|(other, _)| *other == number)?;
        let (_, check) = checks.remove(place)?;
        if checks.is_empty() {
            self.clients.remove(client);
            self.turns.retain(|other| other != client);
        }
        self.length -= 1;
        Some(check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::client_network::ClientNetwork;
    use std::net::Ipv4Addr;

    fn client(number: u32, is_proven: bool) -> Client {
        let key = GuessKey::of_network(ClientNetwork::of(Ipv4Addr::from_bits(number).into()));
        Client { is_proven, key }
    }

    fn add(waiting: &mut WaitingChecks<u32>, number: u32, is_proven: bool) -> Option<Option<u32>> {
        match waiting.add(client(number, is_proven), number) {
            Added::Waits(_, displaced) => Some(displaced),
            Added::Refused(_) => None,
        }
    }

    #[test]
    fn few_addresses_neither_take_all_places_nor_all_turns() {
        let mut waiting = WaitingChecks::default();
        for number in 0..4 {
            let added = (0..OF_CLIENT_MAX + 1).filter(|_| add(&mut waiting, number, false).is_some()).count();
            assert_eq!(added, OF_CLIENT_MAX);
        }
        assert_eq!(waiting.len(), LANE_MAX);
        let displaced = add(&mut waiting, 9, false).expect("a place");
        assert!(displaced.is_some_and(|other| other < 4), "somebody who has many has to go");
        let first: Vec<u32> = std::iter::from_fn(|| waiting.take()).take(6).collect();
        assert_eq!(first.iter().filter(|number| **number == 9).count(), 1, "it waits for one turn: {first:?}");
    }

    #[test]
    fn a_full_lane_of_clients_with_one_check_each_refuses_and_the_other_lane_does_not() {
        let mut waiting = WaitingChecks::default();
        assert!((0..LANE_MAX as u32).all(|number| add(&mut waiting, number, false).is_some()));
        assert_eq!(add(&mut waiting, 1000, false), None);
        assert_eq!(add(&mut waiting, 2000, true), Some(None));
        assert_eq!(add(&mut waiting, 2000, true), Some(None));
        let first: Vec<u32> = std::iter::from_fn(|| waiting.take()).take(4).collect();
        assert_eq!(first, [2000, 0, 2000, 1], "the lanes take turns");
        assert_eq!(std::iter::from_fn(|| waiting.take()).count(), LANE_MAX - 2);
        assert_eq!((waiting.len(), waiting.take()), (0, None));
    }

    #[test]
    fn a_check_that_is_taken_back_leaves_nothing() {
        let mut waiting = WaitingChecks::default();
        let tickets: Vec<Ticket> = (0..10)
            .map(|number| match waiting.add(client(number / 2, false), number) {
                Added::Waits(ticket, None) => ticket,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(waiting.remove(&tickets[3]), Some(3));
        assert_eq!(waiting.remove(&tickets[3]), None);
        assert_eq!(waiting.remove(&tickets[2]), Some(2));
        let rest: Vec<u32> = std::iter::from_fn(|| waiting.take()).collect();
        assert_eq!(rest, [0, 4, 6, 8, 1, 5, 7, 9]);
        assert!(waiting.strangers.clients.is_empty() && waiting.strangers.turns.is_empty());
        assert_eq!(waiting.remove(&tickets[0]), None);
    }
}
