//! Decides which connections get memory and which are ended. It knows how many bytes of the budget
//! each connection holds. It has no locks, no clock and no wake-ups.
//!
//! The rule has three parts. 1. Free memory goes to the waiting connections in the order of their
//! queue. Small connections come before large connections. A connection is small while it would
//! hold at most 1/64 of the budget. Among connections of the same kind, the connection that began
//! first comes first. 2. While connections wait, connections whose peers have stalled are ended,
//! beginning with the longest stall. No more connections are ended than the waiting connections
//! need. 3. While at least one holder does not wait for memory, no other connection is ended,
//! because this holder will finish, go on or stall. When every holder waits for memory, no holder
//! can go on. Then the first connection in the queue stays. Of the others, those that hold most are
//! ended until the first connection can have the memory that it asks for; of equals, the connection
//! that began last is ended first. The first large connection in the queue is ended only after all
//! others, so that large requests are also completed, one after the other.
//!
//! The caller bounds the waiting time (`MemoryLimits::wait_max`).

use super::line::{Line, Place};
use super::peer::Peer;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A connection that would hold at most this share of the budget is small.
const SMALL_SHARE: u64 = 64;

/// A connection that holds bytes of the budget, or waits for some.
struct Member {
    bytes: u64,
    peer: Arc<Peer>,
    began: u64,
    /// The number of parts of the connection that wait.
    asks: usize,
    /// The highest number of bytes that one of these parts asks for.
    asked_bytes: u64,
    /// Whether the connection has been told to give back the bytes that it holds.
    ends: bool,
}

impl Member {
    fn new(peer: Arc<Peer>, began: u64) -> Self {
        Self { bytes: 0, peer, began, asks: 0, asked_bytes: 0, ends: false }
    }

    /// Whether the connection would use memory at once if it got some. A connection that also waits
    /// for its peer takes no memory before its peer has made progress.
    fn waits_for_memory(&self) -> bool {
        self.asks > 0 && !self.ends && !self.peer.is_waited_for()
    }

    /// The time since which its peer has stalled, if that is at least `stalled_ms` ago.
    fn stalled_since_ms(&self, now_ms: u64, stalled_ms: u64) -> Option<u64> {
        self.peer.waited_for_since_ms().filter(|since_ms| now_ms.saturating_sub(*since_ms) >= stalled_ms)
    }

    fn tell_to_end(&mut self) -> u64 {
        self.ends = true;
        self.peer.tell_to_end();
        self.bytes
    }
}

/// The holders of the budget.
pub(super) struct Holders {
    bytes_max: u64,
    bytes_used: u64,
    /// The members by the number of their account. An account that holds nothing and asks for
    /// nothing is not a member.
    members: BTreeMap<u64, Member>,
    line: Line,
    /// The number of members that there have been.
    begun: u64,
}

impl Holders {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes_used: 0, members: BTreeMap::new(), line: Line::default(), begun: 0 }
    }

    pub(super) fn bytes_used(&self) -> u64 {
        self.bytes_used
    }

    /// The number of connections that wait for memory.
    pub(super) fn waiting(&self) -> usize {
        self.line.accounts().count()
    }

    /// The number of bytes that an account holds.
    pub(super) fn held(&self, account: u64) -> u64 {
        self.members.get(&account).map_or(0, |member| member.bytes)
    }

    /// Adds bytes to those that an account holds. Returns false and changes nothing if the free
    /// memory is not enough for these bytes and for the connections before this one in the queue.
    pub(super) fn take(&mut self, account: u64, peer: &Arc<Peer>, bytes: u64) -> bool {
        let free = self.bytes_max - self.bytes_used;
        if bytes > free
            || (!self.line.is_empty() && bytes > free.saturating_sub(self.asked_before(account, bytes, free)))
        {
            return false;
        }
        self.bytes_used += bytes;
        self.change(account, peer, |member| member.bytes += bytes);
        true
    }

    /// The number of bytes that the connections ask for that are before an account in the queue, if
    /// that account asks for `bytes`. The sum may end once it reaches `enough`.
    fn asked_before(&self, account: u64, bytes: u64, enough: u64) -> u64 {
        let place = match self.members.get(&account) {
            Some(member) => self.place(member.bytes + bytes.max(member.asked_bytes), member.began),
            None => self.place(bytes, self.begun),
        };
        let mut asked = 0u64;
        for member in self.line.before(place).filter(|before| *before != account).filter_map(|n| self.members.get(&n)) {
            if member.waits_for_memory() {
                asked = asked.saturating_add(member.asked_bytes);
            }
            if asked >= enough {
                break;
            }
        }
        asked
    }

    /// Notes that a part of a connection waits for this many bytes. Returns false if too many
    /// connections wait.
    pub(super) fn ask(&mut self, account: u64, peer: &Arc<Peer>, bytes: u64) -> bool {
        let is_new = self.members.get(&account).is_none_or(|member| member.asks == 0);
        if is_new && self.line.is_full(self.place(self.held(account) + bytes, 0)) {
            return false;
        }
        self.change(account, peer, |member| {
            member.asks += 1;
            member.asked_bytes = member.asked_bytes.max(bytes);
        });
        true
    }

    /// Notes that a part of a connection waits no longer.
    pub(super) fn ask_no_more(&mut self, account: u64) {
        let Some(peer) = self.members.get(&account).map(|member| member.peer.clone()) else { return };
        self.change(account, &peer, |member| {
            member.asks = member.asks.saturating_sub(1);
            member.asked_bytes = if member.asks == 0 { 0 } else { member.asked_bytes };
        });
    }

    /// Gives back some of the bytes that an account holds.
    pub(super) fn give(&mut self, account: u64, bytes: u64) {
        let Some(member) = self.members.get(&account) else { return };
        let (bytes, peer) = (bytes.min(member.bytes), member.peer.clone());
        self.bytes_used -= bytes;
        self.change(account, &peer, |member| {
            member.bytes -= bytes;
            if member.bytes == 0 {
                member.ends = false;
                member.peer.has_given_back();
            }
        });
    }

    /// Changes a member and updates its place in the queue. The member is created if necessary, and
    /// removed if it holds and asks for nothing afterwards.
    fn change(&mut self, account: u64, peer: &Arc<Peer>, change: impl FnOnce(&mut Member)) {
        let begun = &mut self.begun;
        let member = self.members.entry(account).or_insert_with(|| {
            *begun += 1;
            Member::new(peer.clone(), *begun - 1)
        });
        let before = (member.asks, member.bytes + member.asked_bytes);
        change(member);
        let after = (member.asks, member.bytes + member.asked_bytes);
        let (began, is_gone) = (member.began, member.bytes == 0 && member.asks == 0);
        if before.0 > 0 {
            self.line.remove(self.place(before.1, began));
        }
        if after.0 > 0 {
            self.line.insert(self.place(after.1, began), account);
        }
        if is_gone {
            self.members.remove(&account);
        }
    }

    fn place_of(&self, member: &Member) -> Place {
        self.place(member.bytes + member.asked_bytes, member.began)
    }

    fn place(&self, bytes: u64, began: u64) -> Place {
        Place { is_large: bytes > self.bytes_max / SMALL_SHARE, began }
    }

    /// Ends connections according to the rule, so that waiting connections get memory. Returns
    /// their number. The bytes of connections that were told to end before count as free.
    pub(super) fn relieve(&mut self, now_ms: u64, stalled_ms: u64) -> usize {
        let mut waiting = self.line.accounts().filter_map(|account| Some((account, self.members.get(&account)?)));
        let Some((first, member)) = waiting.find(|(_, member)| member.waits_for_memory()) else { return 0 };
        let first_asked = member.asked_bytes;
        let others = waiting.filter(|(_, member)| member.waits_for_memory()).map(|(_, member)| member.asked_bytes);
        let asked = first_asked + others.sum::<u64>();
        let leaving: u64 = self.members.values().filter(|member| member.ends).map(|member| member.bytes).sum();
        let free = self.bytes_max - self.bytes_used + leaving;
        let (stalled, free) = self.end(self.stalled(now_ms, stalled_ms), free, asked);
        let jammed = if free < first_asked { self.jammed(first) } else { Vec::new() };
        stalled + self.end(jammed, free, first_asked).0
    }

    /// Ends connections in this order until `wanted` bytes are free. Returns the number of
    /// connections, and the number of free bytes.
    fn end(&mut self, accounts: Vec<u64>, mut free: u64, wanted: u64) -> (usize, u64) {
        let mut told = 0;
        for account in accounts {
            if free >= wanted {
                break;
            }
            free += self.members.get_mut(&account).map_or(0, Member::tell_to_end);
            told += 1;
        }
        (told, free)
    }

    /// The connections that hold memory and have not been told to end.
    fn holding(&self) -> impl Iterator<Item = (u64, &Member)> {
        let holding = self.members.iter().filter(|(_, member)| member.bytes > 0 && !member.ends);
        holding.map(|(account, member)| (*account, member))
    }

    /// The connections whose peers have stalled, the longest stall first.
    fn stalled(&self, now_ms: u64, stalled_ms: u64) -> Vec<u64> {
        let stalled = |(account, member): (u64, &Member)| Some((member.stalled_since_ms(now_ms, stalled_ms)?, account));
        let mut stalled: Vec<_> = self.holding().filter_map(stalled).collect();
        stalled.sort_unstable();
        stalled.into_iter().map(|(_, account)| account).collect()
    }

    /// The connections that may be ended because all holders wait for each other, in the order in
    /// which they are ended. There are none if any holder can go on.
    fn jammed(&self, first: u64) -> Vec<u64> {
        if !self.holding().all(|(_, member)| member.waits_for_memory()) {
            return Vec::new();
        }
        let is_large = |account: &u64| self.members.get(account).is_some_and(|member| self.place_of(member).is_large);
        let first_large = self.line.accounts().find(is_large);
        let others = self.holding().filter(|(account, _)| *account != first);
        let order = |(account, member): (u64, &Member)| {
            (Some(account) == first_large, Reverse((member.bytes, member.began)), account)
        };
        let mut others: Vec<_> = others.map(order).collect();
        others.sort_unstable();
        others.into_iter().map(|(.., account)| account).collect()
    }
}

#[cfg(test)]
mod tests;
