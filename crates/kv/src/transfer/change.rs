//! Takes the roles of this node from another placement (docs/design/ring-changes.md, "Adopting" and
//! "Filling").
//!
//! The order of steps matters. What this node does not hold is known, durably, before the placement
//! is in force. What becomes foreign counts as foreign before that, too: whoever asks whether this
//! node holds anything for others must not get a no. What is foreign no longer counts as foreign
//! until after that: then the copies that it took for others are owed to the other primaries.

use super::Transfers;
use super::foreign::NoLongerForeign;
use super::roles::{is_newcomer, is_of_one_ring, joining, unprepared};
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::partition::PartitionTable;
use crate::replica::ClassId;
use ombak_ring::ReplicaSet;
use ombak_ring::placement::{HomePlacement, Phase, Placement};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::collections::BTreeSet;

impl Transfers {
    /// Takes the roles of this node from a placement that is about to be in force.
    pub(crate) fn set_placement(
        &self,
        placement: &Placement,
        here: NodeId,
        partitions: &PartitionTable,
        ns: &BTreeSet<u32>,
    ) {
        self.adopt(placement, here, ns);
        let changed = self.changed_homes(placement);
        changed.iter().for_each(|home| self.classes.set_joining(home.home(), joining(home, here)));
        self.foreign.begin_placement(&changed, here);
        let is_alone = placement.nodes().iter().eq([&here]);
        self.set_aside.apply(partitions, is_alone);
        self.doubt.apply(is_alone);
    }

    /// Ends [`Self::set_placement`]: the placement is in force.
    pub(crate) fn placement_is_in_force(
        &self,
        placement: &Placement,
        here: NodeId,
        partitions: &PartitionTable,
        ns: &BTreeSet<u32>,
    ) {
        let nearer = self.foreign.set_placement(&self.changed_homes(placement), here);
        *self.in_force.lock() = Some(placement.clone());
        for nearer in nearer {
            if let Some(partition) = partitions.get(nearer.partition) {
                // A copy that was begun as a foreign one is counted after this.
                partition.await_writers();
            }
            self.owe_what_was_foreign(placement, here, ns, nearer);
        }
        self.wake();
    }

    /// The homes that differ from those of the placement in force.
    fn changed_homes<'a>(&self, placement: &'a Placement) -> Vec<HomePlacement<'a>> {
        let before = self.in_force.lock();
        let before = before.as_ref().filter(|before| before.size() == placement.size());
        let is_same = |home: &HomePlacement<'_>| {
            before.is_some_and(|before| before.home(home.home()).version() == home.version())
        };
        placement.homes().filter(|home| !is_same(home)).collect()
    }

    /// This node has become a primary of classes of which it may hold copies for others. No other
    /// primary may have them, and nobody hands them back any more: they are owed to all
    /// (docs/design/replication.md §2).
    fn owe_what_was_foreign(&self, placement: &Placement, here: NodeId, ns: &BTreeSet<u32>, nearer: NoLongerForeign) {
        if is_broken(BrokenRule::RolesKeepWhatIsOwed) {
            return;
        }
        let home = placement.home(nearer.partition);
        for n in ns.iter().copied().filter(|n| *n <= nearer.up_to && home.is_primary(here, *n)) {
            let class = ClassId { partition: nearer.partition, n };
            if self.foreign.may_have_held(nearer, n) {
                self.owe_to_others(class, home.primaries(n), here);
            }
        }
    }

    /// Notes what this node does not hold in a placement. What it becomes full by, the placement
    /// says when it is in force.
    fn adopt(&self, placement: &Placement, here: NodeId, ns: &BTreeSet<u32>) {
        let mut adopted = self.adopted.lock();
        if adopted.as_ref().is_some_and(|adopted| adopted.version() == placement.version()) {
            return;
        }
        for (partition, span) in unprepared(adopted.as_ref(), placement, here, ns) {
            self.fullness.draw_anew(partition, &*self.runtime, |n| span.includes(n));
            self.classes.set_new(partition, span, ns);
        }
        if self.in_force.lock().is_none() {
            self.owe_what_was_foreign_before_the_start(adopted.as_ref(), placement, here, ns);
        }
        self.draw_for_joining(adopted.as_ref(), placement, here, ns);
        if let Some(before) = adopted.as_ref().filter(|before| before.size() == placement.size()) {
            let begins = placement
                .homes()
                .filter(|home| home.version() != before.home(home.home()).version() && is_newcomer(home, here));
            begins.for_each(|home| self.classes.begin_anew(home.home()));
            self.owe_what_is_unproved(before, placement, here, ns);
        }
        *adopted = Some(placement.clone());
    }

    /// Draws other tokens for the classes that this node is to get. It may have been a primary of
    /// them before, and what it handed back in between was not removed (docs/design/anti-entropy.md
    /// §9). A class that has no token gets one: the marks of the proofs name it.
    fn draw_for_joining(&self, before: Option<&Placement>, after: &Placement, here: NodeId, ns: &BTreeSet<u32>) {
        let before = before.filter(|before| before.size() == after.size());
        let is_same = |home: &HomePlacement<'_>| {
            before.is_some_and(|before| before.home(home.home()).version() == home.version())
        };
        for home in after.homes().filter(|home| !is_same(home)) {
            let joining = joining(&home, here);
            self.fullness.draw_anew(home.home(), &*self.runtime, |n| joining.includes(n));
            let ns = ns.iter().copied().filter(|n| joining.includes(*n)).collect();
            // Without randomness the proofs make no marks.
            self.fullness.draw_missing([home.home()].into_iter(), &ns, &*self.runtime);
        }
    }

    /// Owes everything that this node holds of a class to the other ones of these nodes.
    fn owe_to_others(&self, class: ClassId, nodes: ReplicaSet, here: NodeId) {
        nodes.into_iter().filter(|node| *node != here).for_each(|node| self.owed.missed(class, node, 1));
    }

    /// While this node was not running, it has become a primary of classes of which it may hold
    /// copies for others. What is foreign is known only in memory, so they are owed to all.
    fn owe_what_was_foreign_before_the_start(
        &self,
        before: Option<&Placement>,
        after: &Placement,
        here: NodeId,
        ns: &BTreeSet<u32>,
    ) {
        if is_of_one_ring(after) {
            return;
        }
        let before = before.filter(|before| before.size() == after.size());
        let before = before.filter(|before| before.version().lineage == after.version().lineage);
        let was_primary = |home: &HomePlacement<'_>, n: u32| match (before, home.phase()) {
            (Some(before), _) => before.home(home.home()).is_primary(here, n),
            (None, Phase::Pending) => home.replica_set(n).contains(&here),
            (None, Phase::Flipped) => home.other_set(n).contains(&here),
            (None, Phase::Settled) => home.version() <= after.goal().version(),
        };
        for home in after.homes() {
            for n in ns.iter().copied().filter(|n| home.is_primary(here, *n) && !was_primary(&home, *n)) {
                let class = ClassId { partition: home.home(), n };
                self.owe_to_others(class, home.primaries(n), here);
            }
        }
    }

    /// This node was marked as down, or has restarted, while homes flipped without its proof. Where
    /// it stays a primary, the new members may lack what it holds, and nobody else knows of that.
    fn owe_what_is_unproved(&self, before: &Placement, after: &Placement, here: NodeId, ns: &BTreeSet<u32>) {
        if is_broken(BrokenRule::UnprovedPrimariesOwe) {
            return;
        }
        for (was, is) in before.homes().zip(after.homes()).filter(|(was, is)| has_flipped_since(was, is)) {
            for n in ns.iter().copied() {
                let (old, new) = (was.replica_set(n), is.replica_set(n));
                let has_new_members = new.iter().any(|node| !old.contains(node));
                let stays = old.contains(&here) && new.contains(&here);
                if has_new_members && stays && !self.proofs.has_proved(&was, here, n) {
                    let class = ClassId { partition: is.home(), n };
                    self.owe_to_others(class, new, here);
                }
            }
        }
    }

    /// Notes durably what this node does not hold in a placement, before it adopts it. Blocks.
    pub(crate) fn prepare(
        &self,
        placement: &Placement,
        here: NodeId,
        partitions: &PartitionTable,
        ns: &BTreeSet<u32>,
    ) -> Result<(), Error> {
        let was_of_one_ring = self.adopted.lock().as_ref().is_none_or(is_of_one_ring);
        self.adopt(placement, here, ns);
        if was_of_one_ring && is_of_one_ring(placement) || self.save_filling(partitions) {
            return Ok(());
        }
        let why = "what this node lacks in the next placement could not be saved";
        Err(StoreFailure::new(StoreFailureKind::Io, why).into())
    }

    /// Forgets marks that nobody can or need pay: this node is no primary of the class any more, so
    /// its copies are foreign and go to all primaries; or the peer is no member any more. While a
    /// home changes, every mark stays.
    ///
    /// No other placement gets in force meanwhile: the marks that it brings are needed in it, and
    /// may be needless in the one before. `others` are the members that own nothing.
    pub fn forget_needless_marks(&self, present: &Placement, here: NodeId, others: impl FnOnce() -> Vec<NodeId>) {
        if is_of_one_ring(present) {
            return;
        }
        let mut members: BTreeSet<NodeId> = others().into_iter().collect();
        let in_force = self.in_force.lock();
        let Some(placement) = in_force.as_ref().filter(|placement| !is_of_one_ring(placement)) else { return };
        if is_broken(BrokenRule::RolesKeepWhatIsOwed) {
            return self.owed.forget(|class, peer| !placement.home(class.partition).is_primary(peer, class.n));
        }
        members.extend(placement.nodes());
        self.owed.forget(|class, peer| {
            let home = placement.home(class.partition);
            !home.is_changing() && (!home.is_primary(here, class.n) || !members.contains(&peer))
        });
    }
}

/// Whether a home has another ring in force by steps: not because nothing of it moves.
fn has_flipped_since(before: &HomePlacement<'_>, after: &HomePlacement<'_>) -> bool {
    before.version() != after.version()
        && before.phase() != Phase::Flipped
        && before.in_force().version() != after.in_force().version()
}
