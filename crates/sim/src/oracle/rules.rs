//! What must be true, whatever has failed.

use super::conditions::Conditions;
use super::copies::{Copies, DiskCopy, EventId, Token, peek, tokens_of};
use super::key_history::{KeyHistory, Outcome, WriteRecord};
use super::violation::Violation;
use super::{Key, Witness, storage_key_of};
use crate::bucket_kinds::Merging;
use crate::cluster::{Cluster, MemberStage, Node};
use crate::world::HostId;
use ombak_kv::{FillReason, Kv};
use ombak_storage::fs::sim::Loss;
use ombak_types::{Object, VectorClock};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long after its deadline a write can no longer be under way.
const AFTER_DEADLINE: Duration = Duration::from_millis(5);

/// What clients were told, and what faults have destroyed.
#[derive(Default)]
pub struct Oracle {
    pub(super) keys: BTreeMap<Key, KeyHistory>,
    /// What the disks of stopped nodes are known to hold.
    stopped: BTreeMap<HostId, BTreeMap<Key, DiskCopy>>,
    /// Keys of which a stopped node may have lost its version.
    pub(super) may_have_lost: BTreeMap<HostId, Vec<Key>>,
    next_token: Token,
    /// The conditional puts that were acknowledged.
    pub(super) conditions: Conditions,
    pub(super) destructive_faults: u64,
    forgoes_overlap: bool,
    /// Sees each change of a store.
    pub witness: Witness,
    /// The first rule that was broken.
    pub violation: Option<Violation>,
    /// How many writes faults have destroyed.
    pub destroyed: u64,
    /// How many versions that were not synced may have been lost with the power.
    pub unsynced_lost: u64,
    /// How many times a key was checked.
    pub checks: u64,
    /// How many sums of nodes were compared with their stores.
    pub sums_compared: u64,
    /// How many times the sums of one partition were checked.
    pub(super) sums_checks: u64,
    /// The partitions of hosts from whose stores a record has vanished.
    pub(super) robbed: BTreeSet<(HostId, u32)>,
    /// The partitions of hosts whose stores were set back, until their nodes know it.
    unaware: BTreeSet<(HostId, u32)>,
}

impl Oracle {
    pub(super) fn history(&mut self, key: Key) -> &mut KeyHistory {
        self.keys.entry(key).or_default()
    }

    /// Notes what a client did to a key, for people.
    pub fn note(&mut self, key: Key, what: String) {
        self.history(key).log.push(what);
    }

    /// Notes something that concerns all keys, for people.
    pub fn note_all(&mut self, what: &str) {
        self.keys.values_mut().for_each(|history| history.log.push(what.to_owned()));
    }

    /// What clients did to the key of the violation.
    pub fn log_of_violation(&self) -> Vec<String> {
        let text = self.violation.as_ref().map(ToString::to_string).unwrap_or_default();
        let is_meant = |key: &Key| text.starts_with(&format!("{key}:")) || text.starts_with(&format!("{key} "));
        let log = self.keys.iter().filter(|(key, _)| is_meant(key)).flat_map(|(_, history)| history.log.clone());
        let log: Vec<String> = log.collect();
        // What concerns all keys is in each log.
        let of_all = || {
            let first = self.keys.values().next().map(|history| history.log.clone()).unwrap_or_default();
            first.into_iter().filter(|line| line.contains(" members: ") || line.contains(" fault ")).collect()
        };
        if log.is_empty() { of_all() } else { log }
    }

    /// A write begins. Returns its token.
    pub fn write_begins(&mut self, key: Key, replaces: BTreeSet<Token>, is_delete: bool) -> Token {
        let token = self.next_token;
        self.next_token += 1;
        let began_at_fault = self.destructive_faults;
        let outcome = Outcome::UnderWay;
        // Where one of concurrent values is kept, the tombstone of a delete that is under way may
        // be the one.
        let may_lose_to_a_delete = key.kind.merging != Merging::Siblings && self.history(key).has_open_delete();
        let record = WriteRecord {
            may_lose_to_a_delete,
            replaces,
            is_delete,
            outcome,
            is_destroyed: false,
            is_off_primaries: false,
            is_outlived: false,
            lost_under_way: false,
            must_begin_by: None,
            was_seen: false,
            is_too_late: false,
            primaries: 0,
            robbed: 0,
            began_at_fault,
        };
        self.history(key).writes.insert(token, record);
        token
    }

    /// A write has ended.
    ///
    /// `must_begin_by`: the moment after which the write must not be executed any more, if it is
    /// known.
    pub fn write_ends(
        &mut self,
        cluster: &Cluster,
        key: Key,
        token: Token,
        is_acknowledged: bool,
        must_begin_by: Option<Duration>,
    ) {
        let copies = self.copies(cluster, key);
        let history = self.history(key);
        let is_held = is_held(history, token, &copies, key, Evidence::Possible);
        let Some(write) = history.writes.get_mut(&token) else { return };
        write.must_begin_by = must_begin_by;
        write.outcome = if is_acknowledged { Outcome::Acknowledged } else { Outcome::Unknown };
        // The copies that were acknowledged may have been destroyed before the client was told.
        if is_acknowledged && !is_held && write.lost_under_way {
            write.is_destroyed = true;
            self.destroyed += 1;
        }
        self.check_copies(key, &copies, cluster.world.elapsed());
    }

    /// So many primaries have acknowledged a write.
    pub fn is_on_primaries(&mut self, key: Key, token: Token, primaries: u32) {
        if let Some(write) = self.history(key).writes.get_mut(&token) {
            write.primaries = primaries;
        }
    }

    /// The writes that a read of so many primaries that begins now must not miss: one of those
    /// primaries has them.
    pub fn must_find(&self, key: Key, primaries: u32) -> BTreeSet<Token> {
        let count = key.kind.n + 1 - primaries.min(key.kind.n);
        let is_promised = primaries > 0 && !self.forgoes_overlap;
        self.keys.get(&key).map(|history| history.on_primaries(count)).filter(|_| is_promised).unwrap_or_default()
    }

    /// The stores of a host were set back. Its node learns that of a store from the primaries that
    /// were told more of it. Until then it answers with what it has. What it lost since the last
    /// time that it told anything it learns from exchanges alone (docs/design/anti-entropy.md,
    /// "Limits").
    pub fn note_set_back(&mut self, cluster: &Cluster, host: HostId) {
        let partitions = 0..cluster.ring().map_or(0, |ring| ring.size().get());
        self.unaware.extend(partitions.map(|partition| (host, partition)));
    }

    /// Whether the store of a primary of a key was set back, and its node does not know it yet.
    pub fn is_unaware(&mut self, cluster: &Cluster, key: Key) -> bool {
        self.look_who_knows(cluster);
        let owners = cluster.owners_of(&key);
        cluster.home_of(&key).is_some_and(|home| owners.iter().any(|owner| self.unaware.contains(&(*owner, home))))
    }

    /// Looks of which stores that were set back the nodes know it by now.
    fn look_who_knows(&mut self, cluster: &Cluster) {
        let hosts: BTreeSet<HostId> = self.unaware.iter().map(|(host, _)| *host).collect();
        for host in hosts {
            let classes = cluster.node(host).kv.as_ref().map(Kv::filling_classes).unwrap_or_default();
            for (class, _) in classes.iter().filter(|(_, reason)| *reason == FillReason::Restored) {
                self.unaware.remove(&(host, class.partition));
            }
        }
    }

    /// A read of so many primaries has found nothing at all. `before` are the writes that it must
    /// not miss, from before it began.
    pub fn found_nothing(&mut self, key: Key, primaries: u32, before: &BTreeSet<Token>) {
        let now = self.must_find(key, primaries);
        if let Some(token) = before.intersection(&now).next() {
            self.broken(Violation::NotFound { key: key.to_string(), token: *token, primaries });
        }
    }

    /// The writes that a client has seen in an object.
    pub fn read(&mut self, key: Key, place: &str, object: &Object) -> BTreeSet<Token> {
        let (tokens, fault) = tokens_of(object);
        self.check_tokens(key, place, &tokens, fault.as_deref());
        tokens
    }

    /// The token of the write that begins next.
    pub const fn next_token(&self) -> Token {
        self.next_token
    }

    /// A fold deletes these writes of a key. They must have begun before the write that began next
    /// when the fold had found its keys.
    pub fn fold_erases(&mut self, key: Key, deleted: &BTreeSet<Token>, written_before: Token) {
        if let Some(token) = deleted.iter().copied().find(|token| *token >= written_before) {
            self.broken(Violation::ErasedLater { key: key.to_string(), token });
        }
    }

    /// The deletes that a clock has seen, of which the values were not shown.
    pub fn deletes_in(&self, key: Key, clock: &VectorClock) -> BTreeSet<Token> {
        let Some(history) = self.keys.get(&key) else { return BTreeSet::new() };
        let has_seen = |actor: &[u8], counter: u64| {
            clock.entries().iter().any(|entry| entry.actor.as_bytes() == actor && entry.counter >= counter)
        };
        let seen = history.events.iter().filter(|((actor, counter), _)| has_seen(actor, *counter));
        let is_delete = |token: &Token| history.writes.get(token).is_some_and(|write| write.is_delete);
        seen.map(|(_, token)| *token).filter(is_delete).collect()
    }

    /// What all disks hold of a key, as far as it is known.
    pub(super) fn copies(&self, cluster: &Cluster, key: Key) -> Copies {
        let Some(home) = cluster.home_of(&key) else { return Copies::new() };
        let storage_key = storage_key_of(key);
        // A store is open before its node runs, and a damaged node may have set aside what it has.
        let may_be_set_aside = |node: &Node| node.kv.is_none() && node.is_damaged;
        let copy = |node: &Node| match (node.store(home), self.stopped.get(&node.host)) {
            (Some(store), known) if known.is_none() || !may_be_set_aside(node) => {
                peek(&*store, &storage_key, node.kv.as_ref(), home)
            }
            (_, Some(known)) => known.get(&key).cloned().unwrap_or(DiskCopy::Absent),
            (_, None) => DiskCopy::Absent,
        };
        let counts = |node: &&Node| node.stage != MemberStage::Gone;
        cluster.nodes.iter().filter(counts).map(|node| (node.host, copy(node))).collect()
    }

    /// What all disks hold of each key, as far as it is known.
    pub fn all_copies(&self, cluster: &Cluster) -> BTreeMap<Key, Copies> {
        self.keys.keys().map(|key| (*key, self.copies(cluster, *key))).collect()
    }

    /// A node is about to stop. What its disks will certainly hold is remembered, and what only
    /// they held and will not hold counts as destroyed.
    pub fn node_stops(&mut self, cluster: &Cluster, host: HostId, loss: Loss, forgets_all: bool) {
        if cluster.node(host).kv.is_none() {
            return;
        }
        let before = self.all_copies(cluster);
        let survives = |copy: &DiskCopy| match copy {
            DiskCopy::Version { is_synced, .. } => !forgets_all && (loss == Loss::Nothing || *is_synced),
            DiskCopy::Absent | DiskCopy::Unreadable => false,
        };
        let held = before.iter().map(|(key, copies)| (*key, copies.get(&host).cloned().unwrap_or(DiskCopy::Absent)));
        let held: Vec<(Key, DiskCopy)> = held.collect();
        let is_unsynced = |copy: &DiskCopy| matches!(copy, DiskCopy::Version { is_synced: false, .. });
        if loss != Loss::Nothing {
            let unsynced = held.iter().filter(|(_, copy)| is_unsynced(copy)).map(|(key, _)| *key);
            let unsynced: Vec<Key> = unsynced.collect();
            let when = cluster.world.elapsed();
            for key in &unsynced {
                self.note(*key, format!("{when:?} host {} stops, and its version is not synced", host.0));
            }
            self.unsynced_lost += unsynced.len() as u64;
            self.may_have_lost.insert(host, if forgets_all { Vec::new() } else { unsynced });
        }
        let kept = held.into_iter().filter(|(_, copy)| survives(copy)).collect();
        self.stopped.insert(host, kept);
        if forgets_all {
            self.witness.note_destroyed(host);
        }
        if cluster.node(host).is_damaged {
            self.witness.note_doubtful(host);
        }
        if loss != Loss::Nothing || forgets_all {
            self.destructive_faults += 1;
            self.witness.note_loss(host);
        }
        for (key, before) in before {
            let mut after = before.clone();
            after.insert(host, self.stopped[&host].get(&key).cloned().unwrap_or(DiskCopy::Absent));
            self.mark_destroyed(key, &before, &after, cluster.world.elapsed());
        }
    }

    /// A node runs again.
    pub fn node_runs(&mut self, cluster: &Cluster, host: HostId) {
        self.stopped.remove(&host);
        self.check_losses(cluster, host);
        // Damage that the store takes for an interrupted write is unknown to it, and so is what
        // that has brought back. Anything else is in doubt, and nobody gets it. Where a key has one
        // primary, nobody can know that it was removed (docs/design/anti-entropy.md, "Limits").
        let node = cluster.node(host);
        let (is_damaged, may_hide_damage) = (node.is_damaged, node.may_hide_damage);
        for key in self.keys() {
            if may_hide_damage || is_damaged && key.kind.n == 1 {
                let copy = &self.copies(cluster, key)[&host];
                if self.witness.note_revived(host, key, copy) {
                    self.witness.note_returned(host, key, copy);
                }
            }
        }
    }

    /// A member is about to be marked as down or removed by force. From then on nobody promises
    /// that reads and writes of primaries have one in common (docs/design/ring-changes.md).
    pub fn forgo_overlap(&mut self) {
        self.forgoes_overlap = true;
    }

    /// Something on the disk of a node was damaged. `before` is what all disks held before that.
    /// From then on all copies of the node may be in doubt. What only it holds may be dropped, so
    /// that counts as destroyed (docs/design/anti-entropy.md §5, rule 6).
    pub fn node_damaged(&mut self, cluster: &Cluster, host: HostId, before: BTreeMap<Key, Copies>) {
        self.witness.note_destroyed(host);
        self.witness.note_doubtful(host);
        self.witness.note_loss(host);
        self.destructive_faults += 1;
        for (key, before) in before {
            let mut after = self.copies(cluster, key);
            if self.may_drop_what_is_in_doubt(key, host) {
                after.insert(host, DiskCopy::Absent);
            }
            self.mark_destroyed(key, &before, &after, cluster.world.elapsed());
        }
    }

    /// Marks the writes that a fault has destroyed: they were on a disk before it, and are on none
    /// after it, or in doubt there. What was lost earlier broke a rule.
    pub(super) fn mark_destroyed(&mut self, key: Key, before: &Copies, after: &Copies, now: Duration) {
        self.check_copies(key, before, now);
        if before == after {
            return;
        }
        let after = &self.without_doubtful(key, after);
        let in_force = self.witness.hosts_in_force(key);
        let at_primaries = |copies: &Copies| -> Copies {
            let is_primary = |host: &HostId| in_force.as_ref().is_none_or(|hosts| hosts.contains(host));
            copies.iter().filter(|(host, _)| is_primary(host)).map(|(host, copy)| (*host, copy.clone())).collect()
        };
        let (before_there, after_there) = (at_primaries(before), at_primaries(after));
        let history = self.history(key);
        let is_promised = |token: &Token| {
            let write = &history.writes[token];
            write.outcome == Outcome::Acknowledged && !write.is_destroyed
        };
        // A delete that was never seen anywhere does not show that a write is still there.
        let is_left = |token: &Token| is_held(history, *token, after, key, Evidence::OnDisk);
        let was_there = |token: &Token, evidence| is_held(history, *token, before, key, evidence);
        let destroyed = |token: &Token| is_promised(token) && was_there(token, Evidence::Possible) && !is_left(token);
        let destroyed: Vec<Token> = history.writes.keys().copied().filter(destroyed).collect();
        let leaves_primaries = |token: &Token| {
            let held = |copies: &Copies| is_held(history, *token, copies, key, Evidence::OnDisk);
            is_promised(token) && held(&before_there) && !held(&after_there)
        };
        let off_primaries: Vec<Token> = history.writes.keys().copied().filter(leaves_primaries).collect();
        let is_under_way = |token: &Token| history.writes[token].outcome == Outcome::UnderWay;
        let lost_early = |token: &Token| is_under_way(token) && was_there(token, Evidence::OnDisk) && !is_left(token);
        let lost_early: Vec<Token> = history.writes.keys().copied().filter(lost_early).collect();
        let has_trace = |token: &Token, copies: &Copies| {
            let successors = history.with_successors(*token);
            copies.values().any(|copy| successors.iter().any(|token| history.has_seen(copy, *token)))
        };
        let outlived = |token: &Token| has_trace(token, before) && !has_trace(token, after);
        let outlived: Vec<Token> = history.writes.keys().copied().filter(outlived).collect();
        self.destroyed += destroyed.len() as u64;
        let writes = &mut self.history(key).writes;
        let mut mark = |tokens: Vec<Token>, mark: fn(&mut WriteRecord)| {
            tokens.iter().for_each(|token| writes.get_mut(token).into_iter().for_each(mark));
        };
        mark(destroyed, |write| write.is_destroyed = true);
        mark(off_primaries, |write| write.is_off_primaries = true);
        mark(lost_early, |write| write.lost_under_way = true);
        mark(outlived, |write| write.is_outlived = true);
    }

    /// Checks what must be true of a key at any time.
    pub fn check(&mut self, cluster: &Cluster, key: Key) {
        let copies = self.copies(cluster, key);
        self.check_copies(key, &copies, cluster.world.elapsed());
    }

    /// Checks what must be true of all keys at any time.
    pub fn check_all(&mut self, cluster: &Cluster) {
        self.look_who_knows(cluster);
        let keys: Vec<Key> = self.keys.keys().copied().collect();
        keys.into_iter().for_each(|key| self.check(cluster, key));
    }

    fn check_copies(&mut self, key: Key, copies: &Copies, now: Duration) {
        self.checks += 1;
        self.ask_witness();
        self.note_copies(key, copies, now);
        for (host, copy) in copies {
            let DiskCopy::Version { tokens, events, fault, .. } = copy else { continue };
            self.check_tokens(key, &format!("host {}", host.0), tokens, fault.as_deref());
            self.check_events(key, events);
        }
        self.note_late(key, now);
        let history = self.history(key);
        let lost = history.promised().find(|token| !is_held(history, *token, copies, key, Evidence::Possible));
        if let Some(token) = lost {
            self.broken(Violation::Lost { key: key.to_string(), token, copies: shown(copies) });
        }
    }

    /// Learns what was stored since the last check.
    fn ask_witness(&mut self) {
        let (stored, violation) = self.witness.take();
        for (host, key, (tokens, events)) in stored {
            self.check_tokens(key, &format!("host {}", host.0), &tokens, None);
            self.check_events(key, &events);
        }
        if let Some(violation) = violation.filter(|_| self.violation.is_none()) {
            self.broken(violation);
        }
    }

    fn check_events(&mut self, key: Key, events: &[(EventId, Token)]) {
        for (event, token) in events {
            let known = *self.history(key).events.entry(event.clone()).or_insert(*token);
            if known != *token {
                let key = key.to_string();
                self.broken(Violation::TwoValuesOfOneEvent { key, first: known, second: *token });
            }
        }
    }

    /// Notes what the disks hold, for people, if it has changed.
    fn note_copies(&mut self, key: Key, copies: &Copies, now: Duration) {
        let history = self.history(key);
        if history.last_copies != *copies {
            history.log.push(format!("{now:?} on disks: {}", shown(copies)));
            history.last_copies.clone_from(copies);
        }
    }

    /// Notes the writes that were not executed in time. Elsewhere than among siblings a value can
    /// be replaced by a write that has not seen it, so that nobody knows whether it was there.
    fn note_late(&mut self, key: Key, now: Duration) {
        if key.kind.merging != Merging::Siblings {
            return;
        }
        let faults = self.destructive_faults;
        for write in self.history(key).writes.values_mut() {
            let is_over = write.must_begin_by.is_some_and(|at| at + AFTER_DEADLINE < now);
            let was_never_there = write.outcome == Outcome::Unknown && !write.was_seen;
            // A fault may have destroyed the only copy.
            write.is_too_late |= is_over && was_never_there && write.began_at_fault == faults;
        }
    }

    fn check_tokens(&mut self, key: Key, place: &str, tokens: &BTreeSet<Token>, fault: Option<&str>) {
        for token in tokens {
            let Some(write) = self.history(key).writes.get_mut(token) else { continue };
            write.was_seen = true;
            if write.is_too_late {
                self.broken(Violation::Late { key: key.to_string(), token: *token });
            }
        }
        let forged = tokens.iter().find(|token| !self.history(key).writes.contains_key(token));
        let what = match (forged, fault) {
            (Some(token), _) => format!("write {token} was made to another key"),
            (None, Some(fault)) => fault.to_owned(),
            (None, None) => return,
        };
        self.broken(Violation::Forged { key: key.to_string(), place: place.to_owned(), what });
    }

    /// Whether a host holds a version of a key that can be read.
    pub fn holds_readable(&self, cluster: &Cluster, key: Key, host: HostId) -> bool {
        self.copies(cluster, key).get(&host).is_some_and(|copy| copy.tokens().is_some())
    }

    /// All keys that were written.
    pub fn keys(&self) -> Vec<Key> {
        self.keys.keys().copied().collect()
    }

    /// Remembers the first violation.
    pub fn broken(&mut self, violation: Violation) {
        self.note_all(&format!("{violation}"));
        self.violation.get_or_insert(violation);
    }
}

/// What shows that a copy has a write.
#[derive(Clone, Copy)]
pub(super) enum Evidence {
    /// Its value, or the event of a successor, is on the disk.
    OnDisk,
    /// As before, or a delete may have replaced it that was never found on a disk.
    Possible,
}

/// Whether some copy has a write, or what has replaced it. Where only one value of concurrent ones
/// is kept, any version of the key will do.
pub(super) fn is_held(history: &KeyHistory, token: Token, copies: &Copies, key: Key, evidence: Evidence) -> bool {
    let mut versions = copies.values().filter_map(|copy| Some((copy, copy.tokens()?)));
    match key.kind.merging {
        Merging::Siblings => {
            let successors = history.with_successors(token);
            // What was deleted may be gone everywhere.
            if successors.iter().any(|token| history.was_delete_executed(*token)) {
                return true;
            }
            let has_seen = |copy: &DiskCopy, token: &Token| match evidence {
                Evidence::OnDisk => history.has_seen(copy, *token),
                Evidence::Possible => history.has_seen_delete(copy, *token),
            };
            let holds = |(copy, tokens): (&DiskCopy, &BTreeSet<Token>)| {
                !tokens.is_disjoint(&successors) || successors.iter().any(|token| has_seen(copy, token))
            };
            versions.any(holds)
        }
        Merging::Single | Merging::LastWriteWins | Merging::WriteOnce => {
            // The clock of a delete that began earlier may have been ahead, so that it won.
            let may_have_removed = |delete: &Token| matches!(evidence, Evidence::Possible) || *delete > token;
            let mut deletes = history.writes.keys().filter(|delete| history.was_delete_executed(**delete));
            versions.next().is_some() || deletes.any(may_have_removed)
        }
    }
}

pub(super) fn shown(copies: &Copies) -> String {
    let text = |(host, copy): (&HostId, &DiskCopy)| match copy {
        DiskCopy::Absent => format!("{}: -", host.0),
        DiskCopy::Unreadable => format!("{}: unreadable", host.0),
        DiskCopy::Version { tokens, is_synced, .. } => {
            format!("{}: {tokens:?}{}", host.0, if *is_synced { "" } else { " not synced" })
        }
    };
    copies.iter().map(text).collect::<Vec<_>>().join(", ")
}
