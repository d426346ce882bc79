//! Answers the questions of coordinators from the partitions of this node.

use super::doubtful_copies::Brings;
use super::engine::Engine;
use crate::conditional::is_expected;
use crate::coordination::get::Ask;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::partition::{Access, Added, Deadline, Failure, MergeRules, Partition, Written};
use crate::replica::{ClassId, ReadReply, ReplicaRead, ReplicaStore, StoreMode};
use ombak_ring::RingVersion;
use ombak_ring::placement::Placement;
use ombak_storage::Origin;
use ombak_types::stored_object;

/// What became of a version that another node sent.
pub enum Taken {
    /// It is stored, or a descendant is.
    Stored(Written),
    /// A fence was raised after its sender read it (docs/design/replication.md §6).
    Fenced,
    /// It is an addition, and an earlier one that it builds on may be on its way.
    TooEarly,
    /// It is an addition to a value that is not here as its coordinator knew it.
    Lacks,
    /// The condition of its put does not hold here (docs/design/replication.md §17).
    Conflict,
    /// Its put has a condition and comes from an older placement. It was not stored.
    Outdated(RingVersion),
}

impl Engine {
    /// Reads a version in its stored form.
    pub(crate) fn read_replica(&self, read: &ReplicaRead, access: Access) -> Result<ReadReply, Failure> {
        if read.ask == Ask::Exchange {
            return Ok(self.exchange_soon(read));
        }
        // The counter is taken before the copy is read: a fence that is raised meanwhile is not
        // known to whoever gets the copy.
        let counter = self.reaping.fences.counter();
        let partition = self.partitions.find(read.partition).map_err(ombak_types::Error::from)?;
        let version = match read.ask {
            Ask::Head | Ask::Exchange => partition.read_head(&read.key, access),
            Ask::Object => partition.read(&read.key, access),
        }?;
        let outdated = self.outdated(read.partition, read.ring).filter(|_| !is_broken(BrokenRule::ReadsAreFenced));
        let full = version.is_none()
            && (self.is_full_primary(read.partition, read.n, read.ring)
                || is_broken(BrokenRule::FillingReplicasProveNoAbsence));
        // As of now: an exchange that runs beside the read may drop the copy.
        let class = ClassId { partition: read.partition, n: read.n };
        let left_to_exchanges =
            version.as_ref().is_some_and(|found| self.transfers.is_left_to_exchanges(class, found.seq));
        Ok(ReadReply { version, full, outdated, left_to_exchanges, counter })
    }

    /// Notes that a key is to be exchanged at once.
    fn exchange_soon(&self, read: &ReplicaRead) -> ReadReply {
        self.transfers.other_ways.exchange_key(ClassId { partition: read.partition, n: read.n }, &read.key);
        let counter = self.reaping.fences.counter();
        ReadReply { version: None, full: false, outdated: None, left_to_exchanges: false, counter }
    }

    /// The version of the placement here, if the home has changed since the one that a sender uses.
    pub(crate) fn outdated(&self, partition: u32, used: RingVersion) -> Option<RingVersion> {
        self.look_at_placement(|known| (used < known.home(partition).version()).then(|| known.version()))
    }

    /// Whether this node is a primary in the ring in force of a class and known to hold everything
    /// of it, and whether a coordinator that uses this version of the placement sees the same
    /// replicas (docs/design/replication.md §1 and §3).
    pub(crate) fn is_full_primary(&self, partition: u32, n: u32, used: RingVersion) -> bool {
        let is_primary = self.look_at_placement(|known| {
            let home = known.home(partition);
            self.agrees(known, partition, used) && self.is_primary(home.in_force(), partition, n)
        });
        is_primary && self.is_full(partition, n)
    }

    /// Whether the acceptance of a conditional put by this node counts: what a majority of the set
    /// in force has seen must be everything. In the other set only the order of the ballots
    /// matters, so a member that is to fill there counts, too (docs/design/ring-changes.md).
    pub(super) fn may_accept(&self, partition: u32, n: u32, used: RingVersion) -> bool {
        let is_in_other_set_alone = self.look_at_placement(|known| {
            let (home, here) = (known.home(partition), self.identity.node_id);
            let is_primary = |ring| self.is_primary(ring, partition, n);
            self.agrees(known, partition, used)
                && home.other().is_some_and(|ring| is_primary(ring))
                && !home.replica_set(n).contains(&here)
        });
        self.is_full_primary(partition, n, used) || is_in_other_set_alone && self.would_be_full(partition, n)
    }

    /// Whether the home is as the sender knows it, and this node is not behind the sender.
    fn agrees(&self, known: &Placement, partition: u32, used: RingVersion) -> bool {
        let is_fenced = !is_broken(BrokenRule::ReadsAreFenced);
        (known.home(partition).version() <= used || !is_fenced) && used <= known.version()
    }

    /// Counts a version that another node has sent, and schedules what follows from it.
    pub(crate) fn note_stored(&self, partition: &Partition, key: &[u8], written: &Written) {
        self.count_entries(written);
        if written.is_new {
            self.note_version(partition, key, written);
        }
    }

    /// Merges a version by clock with the version that is here, and stores the result.
    pub(crate) fn store_replica(&self, store: &ReplicaStore, access: Access) -> Result<Taken, Failure> {
        let is_repair = store.mode == StoreMode::ReplaceUnreadable || store.stored_secs.is_some();
        // A version that is not new was read somewhere.
        self.store_copy(store, if is_repair { Origin::Repair } else { Origin::Replica }, access)
    }

    /// [`Self::store_replica`] of a version with a known origin.
    pub(crate) fn store_copy(&self, store: &ReplicaStore, origin: Origin, access: Access) -> Result<Taken, Failure> {
        let partition = self.partitions.find(store.partition).map_err(ombak_types::Error::from)?;
        let incoming = stored_object::decode(&store.head, Some(&store.body)).map_err(ombak_types::Error::from)?;
        let deadline = Deadline::at_time(store.deadline, &*self.config.runtime);
        let rules = MergeRules { now: self.now(), stored_secs: store.stored_secs, origin, deadline: Some(deadline) };
        let mut locked = match store.mode {
            StoreMode::ReplaceUnreadable => partition.lock_to_repair(&store.key, &incoming.clock, access)?,
            StoreMode::Merge | StoreMode::Add | StoreMode::IfExpected { .. } => partition.lock(&store.key, access)?,
        };
        let _counted = self.transfers.begin_copy(&partition, store.n, &store.key)?;
        // Checked under the key's lock, which is held until the version is stored.
        let is_admitted = self.reaping.fences.admit((store.partition, store.n), &store.key, store.noted);
        if !is_admitted && !is_broken(BrokenRule::CopiesAreFenced) {
            return Ok(Taken::Fenced);
        }
        if let StoreMode::IfExpected { expected, ballot } = &store.mode {
            let is_expected = is_expected(locked.local(), expected, Some(&incoming.clock), rules.now);
            if let Some(known) = self.outdated(store.partition, store.ring).filter(|_| writes_are_fenced()) {
                return Ok(Taken::Outdated(known));
            }
            if !is_expected
                || !self.may_accept(store.partition, store.n, store.ring)
                || self.admit(store.partition, &store.key, *ballot, access)?.is_some()
            {
                return Ok(Taken::Conflict);
            }
        }
        if store.mode == StoreMode::Add && self.has_doubtful(&partition, &locked) {
            // The whole value takes the place of what is in doubt.
            return Ok(Taken::Lacks);
        }
        let brings = Brings::Version(&incoming.clock);
        self.part_from_doubtful((&partition, store.n), &store.key, &mut locked, brings, access)?;
        if store.mode == StoreMode::Add {
            return Ok(match locked.add(&incoming, &rules)? {
                Added::Stored(written) => Taken::Stored(written),
                Added::TooEarly => Taken::TooEarly,
                Added::Lacks => Taken::Lacks,
            });
        }
        if access == Access::Inline && locked.replaces_grown() {
            return Err(Failure::WouldBlock);
        }
        locked.load_for(&incoming.clock, false)?;
        if incoming.brings_timeless_tombstone(locked.local()) {
            if access == Access::Inline {
                // A second try would be refused by the fence that the first one raised.
                return Err(Failure::WouldBlock);
            }
            // A round took the time of this tombstone elsewhere, and this node missed the order. A
            // value that was read before that is older than the deletion, and would be shown
            // (docs/design/replication.md §6, history 13).
            self.reaping.fences.raise_for_key(store.partition, &store.key);
        }
        self.merge_counted(locked, incoming, &rules).map(Taken::Stored)
    }
}

/// Whether a member refuses to acknowledge writes from older placements.
pub(crate) fn writes_are_fenced() -> bool {
    !is_broken(BrokenRule::WritesAreFenced)
}
