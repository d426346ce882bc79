//! What must be true at the moment when a put is acknowledged: its quorum of primaries is met in
//! each set in which puts count (docs/design/ring-changes.md, "Fences" and "Both sets").
//!
//! Which placement the coordinator has counted by is not asked. There must be one that some node
//! has had in force, in which enough primaries of each set have stored the write. The answer of a
//! primary counts in it only if the primary knew no later change of the home when it stored the
//! write.

use super::Key;
use super::copies::{EventId, Token};
use super::violation::Violation;
use super::witness::State;
use crate::world::HostId;
use ombak_ring::Ring;
use ombak_ring::placement::HomePlacement;

impl State {
    /// A put was acknowledged that so many primaries had to store.
    pub(super) fn is_acknowledged(&mut self, key: Key, token: Token, primaries: u32) {
        self.look();
        let Some((home, events)) = self.written.get(&token) else { return };
        let is_counted = |event: &EventId| {
            // Who gave a copy back has proved it, and a tombstone may be reaped at once.
            self.holders.was_removed(key, event)
                || self.placements.values().any(|it| self.is_counted_in(&it.home(*home), key, event, primaries))
        };
        if primaries == 0 || self.placements.is_empty() || events.iter().any(is_counted) {
            return;
        }
        let has_it = |host: &HostId| events.iter().any(|event| self.holders.has_stored(*host, key, event));
        let holders: Vec<usize> = self.nodes.values().filter(|host| has_it(host)).map(|host| host.0).collect();
        let what = format!(
            "there is no placement of home {home} by which {primaries} primaries of each set had acknowledged it; \
             hosts {holders:?} had it"
        );
        self.violation.get_or_insert(Violation::Uncounted { key: key.to_string(), token, what });
    }

    fn is_counted_in(&self, home: &HomePlacement<'_>, key: Key, event: &EventId, primaries: u32) -> bool {
        let acknowledges = |host| {
            let known = self.holders.known_at(host, key, event);
            known.is_some_and(|known| known <= home.version().number)
        };
        let is_met = |ring: &Ring| {
            let owners = ring.owners_of(home.home(), key.kind.n).into_iter().map(|position| ring.id(position.owner));
            let hosts = owners.filter_map(|node| self.nodes.get(&node));
            hosts.filter(|host| acknowledges(**host)).count() >= primaries as usize
        };
        is_met(home.in_force()) && home.other().is_none_or(|ring| is_met(ring))
    }
}
