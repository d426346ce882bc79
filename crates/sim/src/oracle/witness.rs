//! The witness of each change of a store, at the moment of the change.
//!
//! The oracle looks at the disks from time to time. The witness sees what comes and goes in
//! between, and checks what a removal needs: "keep" and "reap last" of docs/design/replication.md.

use super::copies::{DiskCopy, EventId, Seen, Token, peek, seen_in};
use super::holders::Holders;
use super::returned::Returned;
use super::violation::Violation;
use super::{Key, storage_key_of};
use crate::bucket_kinds::Merging;
use crate::watched_stores::WatchedStores;
use crate::world::HostId;
use ombak_kv::hooks::{Change, WriteObserver};
use ombak_kv::{ClassId, Kv};
use ombak_ring::placement::Placement;
use ombak_types::{NodeId, Object};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The newest event of each actor that a version has seen.
type Clock = Vec<EventId>;

/// The writes whose values a version has, with their events.
pub(super) type Writes = (BTreeSet<Token>, Vec<(EventId, Token)>);

/// The version that a host stored last of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct LastStored {
    clock: Clock,
    tokens: BTreeSet<Token>,
}

impl LastStored {
    /// Whether a copy has seen everything that the version has. Without a clock, it has to be the
    /// same version.
    pub(super) fn is_covered_by(&self, copy: &DiskCopy) -> bool {
        match copy {
            DiskCopy::Version { tokens, .. } if self.clock.is_empty() => *tokens == self.tokens,
            DiskCopy::Version { clock, .. } => covers(clock, &self.clock),
            DiskCopy::Absent | DiskCopy::Unreadable => false,
        }
    }

    /// Whether a copy is this version.
    pub(super) fn is_same_as(&self, copy: &DiskCopy) -> bool {
        let has_its_tokens = copy.tokens() == Some(&self.tokens);
        has_its_tokens && matches!(copy, DiskCopy::Version { clock, .. } if is_same(clock, &self.clock))
    }
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalCounts {
    /// Tombstones that a primary has removed.
    pub reaps: u64,
    /// Copies that a node held for others and has removed.
    pub hand_backs: u64,
    /// Tombstones that were removed while a fault lasted.
    pub reaps_in_faults: u64,
    /// Copies for others that were removed while a fault lasted.
    pub hand_backs_in_faults: u64,
}

/// The part of a host in the removal of a copy.
struct Roles {
    is_primary: bool,
    is_changing: bool,
    /// The hosts of the primaries that have to hold what is removed.
    owners: BTreeSet<HostId>,
}

#[derive(Default)]
pub(super) struct State {
    keys: BTreeMap<Vec<u8>, Key>,
    pub(super) stores: BTreeMap<HostId, Arc<WatchedStores>>,
    /// The engines that run.
    pub(super) engines: BTreeMap<HostId, Kv>,
    pub(super) nodes: BTreeMap<NodeId, HostId>,
    /// The hosts of nodes that are members no more.
    pub(super) gone: BTreeSet<HostId>,
    /// The hosts whose process has known for long that its node leaves.
    leavers: BTreeSet<HostId>,
    /// The hosts of nodes whose join is not committed.
    uncommitted: BTreeSet<HostId>,
    /// The newest placement that was seen.
    pub(super) newest: Option<Arc<Placement>>,
    /// The placement that each running engine had last.
    pub(super) adopted: BTreeMap<HostId, Arc<Placement>>,
    /// All placements that were seen, by their numbers.
    pub(super) placements: BTreeMap<u64, Arc<Placement>>,
    /// Who has stored what.
    pub(super) holders: Holders,
    /// The home and the events of each write.
    pub(super) written: BTreeMap<Token, (u32, BTreeSet<EventId>)>,
    /// The hosts whose stores a fault has destroyed or damaged.
    pub(super) destroyed: BTreeSet<HostId>,
    /// The tombstones that were removed.
    reaped: BTreeMap<Key, Vec<Clock>>,
    /// The version that each host stored last of each key.
    last_stored: BTreeMap<(HostId, Key), LastStored>,
    /// The host that stored each write first: its coordinator.
    coordinators: BTreeMap<(Key, Token), HostId>,
    /// The hosts that have removed what they had of a key.
    removed: BTreeSet<(HostId, Key)>,
    /// The hosts whose stores were damaged or set back.
    pub(super) doubtful: BTreeSet<HostId>,
    /// The writes that came back because a record was damaged that said that they were removed or
    /// replaced, and that looks like an interrupted write.
    revived: BTreeMap<Key, BTreeSet<Token>>,
    /// Of those keys the version that nobody else gets, if it is known that nobody does.
    pub(super) returned: BTreeMap<Key, Option<Returned>>,
    /// What was stored since the oracle has asked.
    stored: Vec<(HostId, Key, Writes)>,
    faults: usize,
    counts: RemovalCounts,
    pub(super) violation: Option<Violation>,
}

/// Sees all changes of all stores. Clones share everything.
#[derive(Clone, Default)]
pub struct Witness(pub(super) Arc<Mutex<State>>);

/// The observer of one process.
pub(crate) struct HostWitness {
    pub(crate) witness: Witness,
    pub(crate) host: HostId,
}

impl Witness {
    /// A process begins, with these stores.
    pub(crate) fn process_begins(&self, host: HostId, stores: Arc<WatchedStores>) {
        let mut state = self.0.lock();
        state.stores.insert(host, stores);
        state.leavers.remove(&host);
    }

    /// A process has ended.
    pub(crate) fn process_ended(&self, host: HostId) {
        let ended = {
            let mut state = self.0.lock();
            // What it knew counts on.
            state.look();
            state.adopted.remove(&host);
            (state.stores.remove(&host), state.engines.remove(&host))
        };
        drop(ended);
    }

    /// The engine of a host runs.
    pub(crate) fn runs(&self, host: HostId, node: NodeId, kv: Kv) {
        let mut state = self.0.lock();
        state.nodes.insert(node, host);
        state.engines.insert(host, kv);
    }

    /// The node of a host is no member any more. What it holds counts no more.
    pub(crate) fn note_gone(&self, host: HostId) {
        self.0.lock().gone.insert(host);
    }

    /// The process on a host has known that its node leaves for longer than a put may take. From
    /// now on it coordinates nothing in the place of another node (§15).
    pub(crate) fn note_leaver(&self, host: HostId) {
        self.0.lock().leavers.insert(host);
    }

    /// Whether the join of a node is not committed. Until then what it has written stays where it
    /// is (§15).
    pub(crate) fn set_uncommitted(&self, host: HostId, is_uncommitted: bool) {
        let mut state = self.0.lock();
        if is_uncommitted {
            state.uncommitted.insert(host)
        } else {
            state.uncommitted.remove(&host)
        };
    }

    /// The hosts of the primaries of a key in the set in force, if they are known.
    pub(crate) fn hosts_in_force(&self, key: Key) -> Option<BTreeSet<HostId>> {
        let mut state = self.0.lock();
        state.look();
        let home = state.holders.home_of(key)?;
        let nodes = state.newest.as_ref()?.home(home).replica_set(key.kind.n);
        Some(nodes.iter().filter_map(|node| state.nodes.get(node).copied()).collect())
    }

    /// The newest placement that a node has put in force.
    pub(crate) fn newest_placement(&self) -> Option<Arc<Placement>> {
        let mut state = self.0.lock();
        state.look();
        state.newest.clone()
    }

    /// A fault has destroyed or damaged the stores of a host.
    pub(crate) fn note_destroyed(&self, host: HostId) {
        self.0.lock().destroyed.insert(host);
    }

    /// Damage has put in doubt what a host holds.
    pub(crate) fn note_doubtful(&self, host: HostId) {
        self.0.lock().doubtful.insert(host);
    }

    /// Whether damage may have put in doubt what a host holds.
    pub(crate) fn is_doubtful(&self, host: HostId) -> bool {
        self.0.lock().doubtful.contains(&host)
    }

    /// A host whose stores are damaged has started, and holds this copy of a key. What it had
    /// removed or replaced may be back, if the damage hit the record that said so. The store does
    /// not know, if the damage looks like a write that a kill has interrupted. Returns whether the
    /// copy is another one than that of before.
    pub(super) fn note_revived(&self, host: HostId, key: Key, copy: &DiskCopy) -> bool {
        let mut state = self.0.lock();
        let was_removed = state.removed.contains(&(host, key));
        let is_last = !was_removed && state.last_stored.get(&(host, key)).is_some_and(|last| last.is_same_as(copy));
        if !is_last {
            state.revived.entry(key).or_default().extend(copy.tokens().into_iter().flatten());
        }
        !is_last
    }

    /// The writes of a key that came back because a record was damaged.
    pub(super) fn revived(&self, key: Key) -> BTreeSet<Token> {
        self.0.lock().revived.get(&key).cloned().unwrap_or_default()
    }

    /// The home partition of a key, once something was stored of it.
    pub(super) fn home_of(&self, key: Key) -> Option<u32> {
        self.0.lock().holders.home_of(key)
    }

    /// Something of a key was stored in this home partition.
    #[cfg(test)]
    pub(super) fn note_home(&self, key: Key, home: u32) {
        self.0.lock().holders.note_home(key, home);
    }

    /// A host may have lost what it has stored, or a part of it.
    pub(super) fn note_loss(&self, host: HostId) {
        self.0.lock().holders.may_have_lost(host);
    }

    /// A put was acknowledged this moment that so many primaries had to store.
    pub(crate) fn is_acknowledged(&self, key: Key, token: Token, primaries: u32) {
        self.0.lock().is_acknowledged(key, token, primaries);
    }

    /// So many faults last.
    pub(crate) fn note_faults(&self, faults: usize) {
        self.0.lock().faults = faults;
    }

    /// A key of the run, which changes of stores name only by its storage key.
    pub(crate) fn know(&self, key: Key) {
        self.0.lock().keys.insert(storage_key_of(key), key);
    }

    /// A primary has voted for the removal of tombstones although it may lack something (§6).
    pub(crate) fn note_vote_of_filling(&self, host: HostId, class: ClassId) {
        let what = "it voted for the removal of tombstones, although it may lack something".to_owned();
        let key = format!("partition {} n={}", class.partition, class.n);
        self.0.lock().violation.get_or_insert(Violation::Unproven { key, host: host.0, what });
    }

    /// The version that a host stored last of a key.
    pub(super) fn last_stored(&self, host: HostId, key: Key) -> Option<LastStored> {
        self.0.lock().last_stored.get(&(host, key)).cloned()
    }

    /// What was removed so far.
    pub fn counts(&self) -> RemovalCounts {
        self.0.lock().counts
    }

    /// What was stored since the last call, and the rule that was broken first.
    pub(super) fn take(&self) -> (Vec<(HostId, Key, Writes)>, Option<Violation>) {
        let mut state = self.0.lock();
        (std::mem::take(&mut state.stored), state.violation.clone())
    }
}

impl WriteObserver for HostWitness {
    fn changed(&self, change: &Change<'_>) {
        let mut state = self.witness.0.lock();
        let Some(key) = state.keys.get(change.key).copied() else { return };
        match (change.new, change.old) {
            (Some(new), _) => state.stores_version(self.host, key, change.partition, new),
            (None, Some(old)) => state.removes(self.host, key, change.partition, old),
            (None, None) => {}
        }
    }
}

impl State {
    fn stores_version(&mut self, host: HostId, key: Key, home: u32, new: &Object) {
        if self.gone.contains(&host) {
            return;
        }
        let Seen { clock, tokens, events } = seen_in(new);
        // After the removal of a tombstone, nothing older is left anywhere (§6).
        let covering = self.reaped.get(&key).into_iter().flatten().find(|reaped| is_older(&clock, reaped));
        let is_revived = self.revived.get(&key).is_some_and(|revived| !revived.is_disjoint(&tokens));
        if covering.is_some() && (!is_revived || self.must_not_get(host, key, &tokens)) {
            let what = format!("it stored {tokens:?}, which is older than a tombstone that was reaped before");
            self.broken(host, key, what);
        }
        self.check_leaver(host, key, home, &tokens);
        self.check_brought(host, key, &tokens);
        self.look();
        self.check_stand_in(host, key, home);
        let known = self.known_version(host, home);
        self.holders.stores(host, key, home, &clock, known);
        for (event, token) in &events {
            self.written.entry(*token).or_insert_with(|| (home, BTreeSet::new())).1.insert(event.clone());
        }
        for token in &tokens {
            self.coordinators.entry((key, *token)).or_insert(host);
        }
        self.removed.remove(&(host, key));
        self.last_stored.insert((host, key), LastStored { clock, tokens: tokens.clone() });
        self.stored.push((host, key, (tokens, events)));
    }

    /// A member that leaves stands in for nobody (§15): it coordinates no put of a class of which
    /// it is no primary. Who coordinates a put stores it first, unless the value is written once.
    fn check_leaver(&mut self, host: HostId, key: Key, home: u32, tokens: &BTreeSet<Token>) {
        if !self.leavers.contains(&host) || key.kind.merging == Merging::WriteOnce {
            return;
        }
        let is_new = |token: &&Token| !self.coordinators.contains_key(&(key, **token));
        let Some(token) = tokens.iter().find(is_new).copied() else { return };
        self.look();
        if self.roles(host, key, home).is_some_and(|roles| !roles.is_primary) {
            self.broken(host, key, format!("it coordinated write {token} in the place of another, although it leaves"));
        }
    }

    /// What a node has written while it was alone is nowhere else before its join is committed.
    fn check_brought(&mut self, host: HostId, key: Key, tokens: &BTreeSet<Token>) {
        let owner = |token: &Token| self.coordinators.get(&(key, *token)).copied();
        let brought = tokens.iter().filter_map(owner).find(|from| *from != host && self.uncommitted.contains(from));
        if let Some(from) = brought {
            self.broken(host, key, format!("it got what host {} brings, whose join is not committed", from.0));
        }
    }

    /// The number of the home version that a host knows, if it is a node of the cluster.
    fn known_version(&self, host: HostId, home: u32) -> Option<u64> {
        let placement = self.adopted.get(&host).filter(|it| it.nodes().len() > 1)?;
        Some(placement.home(home).version().number)
    }

    /// Whether a tombstone was removed that had seen an event.
    pub(super) fn was_reaped(&self, key: Key, event: &EventId) -> bool {
        let has_seen = |clock: &Clock| covers(clock, std::slice::from_ref(event));
        self.reaped.get(&key).is_some_and(|reaped| reaped.iter().any(has_seen))
    }

    /// Learns of newer placements.
    pub(super) fn look(&mut self) {
        let members = self.engines.iter().filter(|(host, _)| !self.gone.contains(host));
        let adopted = members.map(|(host, kv)| (*host, kv.placement()));
        let is_new = |(host, placement): &(HostId, Arc<Placement>)| {
            self.adopted.get(host).is_none_or(|before| !Arc::ptr_eq(before, placement))
        };
        let adopted: Vec<_> = adopted.filter(is_new).collect();
        for (host, placement) in adopted {
            // A node that is about to join still has a ring of its own.
            if placement.nodes().len() > 1 {
                self.placements.entry(placement.version().number).or_insert_with(|| placement.clone());
                if self.newest.as_ref().is_none_or(|newest| newest.version() < placement.version())
                    && let Some(before) = self.newest.replace(placement.clone())
                {
                    self.check_flips(&before, &placement);
                }
            }
            let before = self.adopted.insert(host, placement.clone());
            let before = before.filter(|before| before.version() < placement.version());
            if let (Some(before), Some(kv)) = (before, self.engines.get(&host).cloned()) {
                self.check_new_roles(host, &kv, &before, &placement);
            }
        }
    }

    fn removes(&mut self, host: HostId, key: Key, home: u32, old: &Object) {
        self.removed.insert((host, key));
        self.look();
        let Some(roles) = self.roles(host, key, home).filter(|_| !self.gone.contains(&host)) else { return };
        let Seen { clock, tokens, .. } = seen_in(old);
        self.holders.removes(host, key, &clock);
        if roles.is_primary && !old.is_deleted() {
            return self.check_drop(host, key, &clock, &tokens);
        }
        let storage_key = storage_key_of(key);
        let others: Vec<(HostId, bool, DiskCopy)> = self
            .stores
            .iter()
            .filter(|(other, _)| **other != host && !self.destroyed.contains(other) && !self.gone.contains(other))
            .filter_map(|(other, stores)| {
                let is_owner = roles.owners.contains(other);
                Some((*other, is_owner, peek(&*stores.get(home)?, &storage_key, self.engines.get(other), home)))
            })
            .collect();
        let is_reap = roles.is_primary;
        let is_doubtful = self.doubtful.contains(&host);
        let (in_faults, counts) = (u64::from(self.faults > 0), &mut self.counts);
        let problem = if is_reap {
            (counts.reaps, counts.reaps_in_faults) = (counts.reaps + 1, counts.reaps_in_faults + in_faults);
            let is_first = !self.reaped.get(&key).is_some_and(|reaped| reaped.contains(&clock));
            let problem = is_first.then(|| others.iter().find_map(|other| hinders_reap(&clock, other))).flatten();
            if is_doubtful && problem.is_some() {
                // An exchange may drop a tombstone that is in doubt, and that others lack.
                return;
            }
            self.reaped.entry(key).or_default().push(clock);
            // What an exchange drops because it is in doubt may have its time.
            problem.or_else(|| hides_later_values(old).filter(|_| !is_doubtful))
        } else {
            (counts.hand_backs, counts.hand_backs_in_faults) =
                (counts.hand_backs + 1, counts.hand_backs_in_faults + in_faults);
            // What was removed before, and what damage has put in doubt, may be dropped at once
            // where it comes back.
            let covers_it = |reaped: &Clock| is_same(reaped, &clock) || is_older(&clock, reaped);
            let may_drop = is_doubtful || self.reaped.get(&key).into_iter().flatten().any(covers_it);
            let mut owners = others.iter().filter(|(_, is_owner, _)| *is_owner && !may_drop);
            owners.find_map(|other| hinders_hand_back(key, &clock, other))
        };
        let problem = problem.or_else(|| roles.is_changing.then(|| "its home is changing".to_owned()));
        if let Some(problem) = problem {
            let what = if is_reap { "reaped" } else { "gave back" };
            self.broken(host, key, format!("it {what} {tokens:?}, although {problem}"));
        }
    }

    /// A primary that removes a value, and no tombstone, has dropped it. That is right if the value
    /// came back after its removal, or if damage has put what the host holds in doubt
    /// (docs/design/anti-entropy.md §5).
    fn check_drop(&mut self, host: HostId, key: Key, clock: &Clock, tokens: &BTreeSet<Token>) {
        let was_removed = self.reaped.get(&key).into_iter().flatten().any(|reaped| is_older(clock, reaped));
        if !was_removed && !self.doubtful.contains(&host) {
            self.broken(host, key, format!("it dropped {tokens:?}, which was removed nowhere"));
        }
    }

    /// The part of a host in the removal of its copy of a key, by the placement that it knows
    /// itself.
    fn roles(&self, host: HostId, key: Key, home: u32) -> Option<Roles> {
        let newest = self.newest.as_ref()?;
        let own = self.engines.get(&host).map(Kv::placement);
        let own = own.filter(|own| own.version() <= newest.version()).unwrap_or_else(|| newest.clone());
        let (own, newest) = (own.home(home), newest.home(home));
        let n = key.kind.n;
        let is_primary = own.primaries(n).iter().any(|node| self.nodes.get(node) == Some(&host));
        // Who has handed over its place meanwhile, or got one, proves nothing about this removal.
        let (before, now) = (own.replica_set(n), newest.primaries(n));
        let owners = before.iter().filter(|node| now.contains(node)).filter_map(|node| self.nodes.get(node).copied());
        Some(Roles { is_primary, is_changing: own.is_changing(), owners: owners.collect() })
    }

    fn broken(&mut self, host: HostId, key: Key, what: String) {
        self.violation.get_or_insert(Violation::Unproven { key: key.to_string(), host: host.0, what });
    }
}

/// Why a tombstone must not be removed: every primary has it on its disk, or something newer, and
/// no other member has anything older.
fn hinders_reap(tombstone: &Clock, (host, is_owner, copy): &(HostId, bool, DiskCopy)) -> Option<String> {
    match (copy, is_owner) {
        (DiskCopy::Unreadable, _) | (DiskCopy::Absent, false) => None,
        (DiskCopy::Absent, true) => Some(format!("primary {} has nothing", host.0)),
        // One primary may take the time already while another one still removes at once. That needs
        // no sync: the tombstone with its time is on the disk.
        (DiskCopy::Version { clock, is_synced: false, is_timeless: false, .. }, true) if is_same(clock, tombstone) => {
            Some(format!("primary {} has not synced it", host.0))
        }
        (DiskCopy::Version { clock, .. }, true) if is_older(clock, tombstone) => {
            Some(format!("primary {} has something older", host.0))
        }
        // The tombstone itself does no harm: a primary may have read it again and sent it on.
        (DiskCopy::Version { clock, tokens, .. }, false) if covers(tombstone, clock) && !is_same(clock, tombstone) => {
            Some(format!("host {} holds {tokens:?} for others", host.0))
        }
        (DiskCopy::Version { .. }, _) => None,
    }
}

/// Why a tombstone must not be removed yet: a primary that misses the removal would keep it with
/// its time, and it would hide a later value of a clock that is behind (§6).
fn hides_later_values(tombstone: &Object) -> Option<String> {
    let has_time = tombstone.is_deleted() && tombstone.has_timed_tombstone();
    has_time.then(|| "the tombstone still has its time".to_owned())
}

/// Why a copy for others must not be removed: every primary has it on its disk, or something newer.
fn hinders_hand_back(key: Key, given: &Clock, (host, _, copy): &(HostId, bool, DiskCopy)) -> Option<String> {
    match copy {
        DiskCopy::Unreadable => None,
        DiskCopy::Absent => Some(format!("primary {} has nothing", host.0)),
        DiskCopy::Version { .. } if key.kind.merging == Merging::WriteOnce => None,
        DiskCopy::Version { clock, is_synced, .. } => {
            let is_held = covers(clock, given);
            let is_durable = *is_synced || !is_same(clock, given);
            match (is_held, is_durable) {
                (false, _) => Some(format!("primary {} does not hold it", host.0)),
                (true, false) => Some(format!("primary {} has not synced it", host.0)),
                (true, true) => None,
            }
        }
    }
}

fn covers(newer: &Clock, older: &[EventId]) -> bool {
    let has = |(actor, counter): &EventId| newer.iter().any(|(of, newest)| of == actor && newest >= counter);
    older.iter().all(has)
}

fn is_same(one: &Clock, other: &Clock) -> bool {
    covers(one, other) && covers(other, one)
}

/// Whether `newer` has seen everything of `older`, and more. A version without a clock is never
/// older.
fn is_older(older: &Clock, newer: &Clock) -> bool {
    !older.is_empty() && covers(newer, older) && !covers(older, newer)
}
