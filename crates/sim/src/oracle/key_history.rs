//! The writes of one key.

use super::copies::{Copies, DiskCopy, EventId, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a client was told about its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet.
    UnderWay,
    /// Success.
    Acknowledged,
    /// An error, or nothing at all: the write may have been executed nevertheless.
    Unknown,
}

/// One write.
#[derive(Clone, Debug)]
pub struct WriteRecord {
    /// The values that the client had read and replaces.
    pub replaces: BTreeSet<Token>,
    /// Whether it writes a tombstone.
    pub is_delete: bool,
    /// Whether a delete was under way when it began, whose tombstone may hide it.
    pub may_lose_to_a_delete: bool,
    /// What the client was told.
    pub outcome: Outcome,
    /// A fault has destroyed all copies of it and of what replaces it.
    pub is_destroyed: bool,
    /// A fault has destroyed its last copy at a primary of the set in force. What others still hold
    /// of it comes back later.
    pub is_off_primaries: bool,
    /// A fault has destroyed all copies of the write itself. Where only one of concurrent values is
    /// kept, another one may then win.
    pub is_outlived: bool,
    /// A fault has destroyed all copies of it before the client was told anything.
    pub lost_under_way: bool,
    /// The moment, since the world began, after which the write must not be executed any more.
    pub must_begin_by: Option<Duration>,
    /// Some disk or answer has shown it.
    pub was_seen: bool,
    /// The write was not executed in time, so it must never be.
    pub is_too_late: bool,
    /// How many primaries have acknowledged it, at least.
    pub primaries: u32,
    /// How many primaries may have lost their record of it, and do not know it.
    pub robbed: u32,
    /// The number of destructive faults when the write began.
    pub began_at_fault: u64,
}

/// The writes of one key.
#[derive(Clone, Debug, Default)]
pub struct KeyHistory {
    /// All writes that have begun.
    pub writes: BTreeMap<Token, WriteRecord>,
    /// Which write each event id that was ever seen belongs to.
    pub events: BTreeMap<EventId, Token>,
    /// What the disks held at the last check.
    pub last_copies: Copies,
    /// What clients did and what became of it, for people.
    pub log: Vec<String>,
}

impl KeyHistory {
    /// The write and everything that replaces it, directly or not.
    pub fn with_successors(&self, token: Token) -> BTreeSet<Token> {
        let mut found = BTreeSet::from([token]);
        let mut last = 0;
        while found.len() > last {
            last = found.len();
            for (later, write) in &self.writes {
                if write.replaces.iter().any(|replaced| found.contains(replaced)) {
                    found.insert(*later);
                }
            }
        }
        found
    }

    /// The writes that at least so many primaries have acknowledged and not lost since, and that no
    /// delete can have removed, as far as clients know.
    pub fn on_primaries(&self, count: u32) -> BTreeSet<Token> {
        let is_meant = |token: &Token, write: &WriteRecord| {
            let is_there = write.primaries.saturating_sub(write.robbed) >= count;
            let is_held = write.outcome == Outcome::Acknowledged && is_there && !write.is_delete;
            is_held && !write.is_destroyed && !write.is_off_primaries && !self.may_be_deleted(*token)
        };
        self.writes.iter().filter(|(token, write)| is_meant(token, write)).map(|(token, _)| *token).collect()
    }

    /// Whether a delete has begun that may have removed a write, or what has replaced it.
    pub fn may_be_deleted(&self, token: Token) -> bool {
        let loses_to_earlier = self.writes.get(&token).is_some_and(|write| write.may_lose_to_a_delete);
        loses_to_earlier || self.writes.iter().any(|(later, write)| write.is_delete && *later > token)
    }

    /// Whether a delete is under way.
    pub fn has_open_delete(&self) -> bool {
        self.writes.values().any(|write| write.is_delete && write.outcome == Outcome::UnderWay)
    }

    /// Whether a copy has seen a write, as far as its clock says.
    pub fn has_seen(&self, copy: &DiskCopy, token: Token) -> bool {
        self.events.iter().any(|(event, of)| *of == token && copy.has_seen(event))
    }

    /// Whether a delete has certainly been executed somewhere.
    pub fn was_delete_executed(&self, token: Token) -> bool {
        let write = self.writes.get(&token).filter(|write| write.is_delete);
        write.is_some_and(|write| write.was_seen || write.outcome == Outcome::Acknowledged)
    }

    /// Whether a copy has seen a delete. The next write may drop the tombstone itself.
    pub fn has_seen_delete(&self, copy: &DiskCopy, token: Token) -> bool {
        if !self.writes.get(&token).is_some_and(|write| write.is_delete) {
            return false;
        }
        let mut events = self.events.iter().filter(|(_, of)| **of == token).map(|(event, _)| event).peekable();
        // A tombstone that was never found on a disk was replaced at once.
        events.peek().is_none() || events.any(|event| copy.has_seen(event))
    }

    /// The writes that must not have vanished.
    pub fn promised(&self) -> impl Iterator<Item = Token> + '_ {
        let is_promised = |write: &WriteRecord| write.outcome == Outcome::Acknowledged && !write.is_destroyed;
        self.writes.iter().filter(move |(_, write)| is_promised(write)).map(|(token, _)| *token)
    }

    /// A promised write that replaces this one.
    pub fn promised_successor(&self, token: Token) -> Option<Token> {
        self.promised().find(|later| {
            let write = &self.writes[later];
            !write.is_outlived && write.replaces.contains(&token)
        })
    }
}
