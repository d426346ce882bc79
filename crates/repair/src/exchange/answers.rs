//! The answers of this node to another one that exchanges a class with it.
//!
//! Invariants:
//! * What an answer calls included was synced before.
//! * Nothing counts as lacking here before the sums of the class were compared with the store.
//! * A mark is noted durably before the answer says so, and only if the class has been full since
//!   the exchange began. With equal sums the mark before says the same of all copies but the newest
//!   ones: then the new one is saved within a minute.

use super::back::KeyedItem;
use super::class_fold::{WantedRanges, fold, sync};
use super::client::{
    ExchangeAnswer, ExchangePart, ExchangeQuestion, KeyHeld, KeysAnswer, KeysQuestion, ListQuestion, MarkQuestion,
    RootAnswer, RootQuestion,
};
use super::exchanges::{Exchanges, is_lost, not_saved};
use super::lists::{Item, is_lacked_by_sender, lacked};
use super::outlines::outlines;
use super::pairs::{Pair, all_have_exchanges, busy, is_pair};
use super::sums::{NO_SLOTS, is_to_come, trimmed};
use crate::compare::compare_seqs;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Known, PeerStore, RepairHost, mix};
use ombak_kv::replica::{Compare, Held, HeldVersion};
use ombak_ring::placement::Phase;
use ombak_runtime::Waited;
use ombak_types::{Error, NodeId, StoreFailure};

impl Exchanges {
    /// Answers a question of another node. Blocks.
    pub(super) fn answer(
        &self,
        here: &dyn RepairHost,
        from: NodeId,
        question: &ExchangeQuestion,
        waited: &Waited<'_>,
    ) -> Result<ExchangeAnswer, Error> {
        check(here, from, question)?;
        if !all_have_exchanges(here, &here.placement(), question.class, &*self.peers) {
            return Err(busy("a primary of the class has no exchanges"));
        }
        let ExchangeQuestion { class, first_slot, .. } = *question;
        self.visits.go_on(class, from, here.runtime().now());
        let sums = || Ok::<_, Error>(self.cut(here, class, first_slot)?.sums);
        match &question.part {
            ExchangePart::Root(root) => self
                .answer_root(here, (class, from), (first_slot, question.class_print), root)
                .map(ExchangeAnswer::Root),
            ExchangePart::Groups => Ok(ExchangeAnswer::Sums(trimmed(sums()?.groups()))),
            ExchangePart::Ranges { groups, takes_outlines: true } => {
                Ok(ExchangeAnswer::Outlines(outlines(&sums()?, *groups)))
            }
            ExchangePart::Ranges { groups, .. } => Ok(ExchangeAnswer::Sums(trimmed(sums()?.of_groups(*groups)))),
            ExchangePart::Some { ranges } => Ok(ExchangeAnswer::Sums(trimmed(sums()?.of(ranges)))),
            ExchangePart::List(list) => {
                self.answer_list(here, (class, from), (first_slot, list), waited).map(ExchangeAnswer::Lacked)
            }
            ExchangePart::Keys(keys) => self.answer_keys(here, (class, from), keys).map(ExchangeAnswer::Keys),
            ExchangePart::Mark(mark) => self.answer_mark(here, (class, from), mark).map(ExchangeAnswer::Marked),
        }
    }

    fn answer_root(
        &self,
        here: &dyn RepairHost,
        pair: Pair,
        (first_slot, class_print): (u32, u64),
        root: &RootQuestion,
    ) -> Result<RootAnswer, Error> {
        let (class, from) = pair;
        let cut = self.cut(here, class, first_slot)?;
        let standing = self.standing(here, class, (root.marked_seq, cut.through))?;
        let own = PeerStore { store_id: standing.store_id, token: standing.token };
        let is_same = standing.is_full && cut.sums.root() == root.sum;
        // Sums of before a change of an n_val prove nothing of the class after it. The token that
        // it has then was drawn after this look, or before these sums.
        check_class_print(here, class, class_print)?;
        if is_same {
            let known = Known { store: root.store_id, seq: root.seq, own, own_seq: cut.through };
            self.note_equal(here, pair, known)?;
            self.visits.end(class, from);
        } else if standing.is_full {
            // Of two nodes that exchange the same class with each other one goes first. A third one
            // must not wait for them: a node that lacks something may compare all the time, and
            // would get nothing.
            if self.working_on.lock().get(&class) == Some(&from) && here.node_id() < from {
                return Err(busy("it compares the partition with this node itself at the moment"));
            }
            // Most likely that one repairs what this one has found.
            if !self.visits.begin(class, from, here.runtime().now()) {
                return Err(busy("another node compares the partition with it at the moment"));
            }
            self.ways_back.begin(pair, cut.seq);
        }
        let known_seq = self.known_seq(here, pair, root.store_id, own)?;
        Ok(RootAnswer { is_same, standing, known_seq })
    }

    /// Up to which seq another node's store was included here, by a mark that holds.
    fn known_seq(&self, here: &dyn RepairHost, pair: Pair, store: u64, own: PeerStore) -> Result<u64, Error> {
        let known = here.transfers().marks.known(pair.0, pair.1, store, own);
        match known {
            Some(known) if !is_lost(here, pair.0, known.own_seq)? => Ok(known.seq),
            _ => Ok(0),
        }
    }

    /// Notes that the copies of another node's store are equal to those of this one. The first such
    /// mark of two stores is durable when this returns.
    fn note_equal(&self, here: &dyn RepairHost, (class, from): Pair, known: Known) -> Result<(), Error> {
        if self.known_seq(here, (class, from), known.store, known.own)? == 0 {
            return self.note(here, (class, from), known);
        }
        let transfers = here.transfers();
        transfers.told.note(from, class.partition, known.store, known.seq);
        transfers.marks.note_soon(class, from, known, here.runtime().now());
        Ok(())
    }

    /// Notes durably what of another node's store is included here, and what that store has on its
    /// disk.
    fn note(&self, here: &dyn RepairHost, (class, from): Pair, known: Known) -> Result<(), Error> {
        let transfers = here.transfers();
        transfers.told.note(from, class.partition, known.store, known.seq);
        let noted = transfers.told.save().and_then(|()| transfers.marks.note(class, from, known));
        noted.map_err(|why| not_saved(&why))
    }

    fn answer_keys(&self, here: &dyn RepairHost, pair: Pair, keys: &KeysQuestion) -> Result<KeysAnswer, Error> {
        let class = pair.0;
        let partition = here.partitions().find(class.partition)?;
        // Doubt that rises after the look is about the look, too.
        let question = Compare { class, versions: keys.versions.clone(), synced: true };
        let compared = compare_seqs(here, &question)?;
        let held = keys.versions.iter().zip(compared);
        // The comparison has noted what it could not read.
        let of_key = |(version, (held, seq)): (&HeldVersion, (Held, u64))| match () {
            () if partition.is_known_as_unreadable(&version.key) => KeyHeld::Unreadable,
            () if seq > 0 && here.transfers().is_doubtful(class.partition, seq) => KeyHeld::InDoubt(held),
            () => KeyHeld::Readable(held),
        };
        let held = held.map(of_key).collect();
        let through = sync(&partition)?;
        let standing = self.standing(here, class, (keys.marked_seq, through))?;
        // A record that vanished while the node was down would look like a removal.
        if standing.is_full && partition.keeps_sums() && !partition.has_checked_sums(class.n) {
            return Err(busy("the sums of this class are not known at the moment"));
        }
        let own = PeerStore { store_id: standing.store_id, token: standing.token };
        Ok(KeysAnswer { standing, known_seq: self.known_seq(here, pair, keys.store_id, own)?, held })
    }

    /// Says which versions of a list this node lacks, and remembers which of its own the other node
    /// lacks.
    fn answer_list(
        &self,
        here: &dyn RepairHost,
        pair: Pair,
        (first_slot, list): (u32, &ListQuestion),
        waited: &Waited<'_>,
    ) -> Result<Vec<u64>, Error> {
        let class = pair.0;
        let partition = here.partitions().find(class.partition)?;
        let seen_seq = self.ways_back.seen_seq(pair).unwrap_or_default();
        let may_bring_back = self.own_store(here, class)?.is_some();
        let (mut own, mut back) = (Vec::new(), Vec::new());
        partition.await_writers();
        let wanted = WantedRanges::new(&list.ranges, first_slot);
        fold(here, &partition, (class, &wanted), waited, |entry, hash, _| {
            let mix = mix(hash, entry.digest);
            // The other node may have the only copy that can be read.
            if partition.is_known_as_unreadable(&entry.key) {
                return;
            }
            own.push(mix);
            if may_bring_back && entry.seq <= seen_seq && is_lacked_by_sender(list, mix) {
                let item = Item { mix, seq: entry.seq };
                back.push(KeyedItem { item, key: entry.key.clone(), digest: entry.digest });
            }
        })?;
        sync(&partition)?;
        self.ways_back.add(pair, back);
        own.sort_unstable();
        Ok(lacked(list, &own))
    }

    /// Notes a mark. What was proved is on the disk after this sync at the latest.
    fn answer_mark(&self, here: &dyn RepairHost, pair: Pair, mark: &MarkQuestion) -> Result<u64, Error> {
        let partition = here.partitions().find(pair.0.partition)?;
        let own_seq = sync(&partition)?;
        let own = self.marked_store(here, pair.0)?.filter(|own| own.token == mark.token);
        let Some(own) = own else { return Ok(0) };
        self.note(here, pair, Known { store: mark.store_id, seq: mark.seq, own, own_seq })?;
        self.visits.end(pair.0, pair.1);
        Ok(own_seq)
    }
}

/// Refuses what is no question between two primaries of a settled home, or to one about keys. While
/// a home changes, proofs ask about keys, and give marks.
fn check(here: &dyn RepairHost, from: NodeId, question: &ExchangeQuestion) -> Result<(), Error> {
    let (class, placement) = (question.class, here.placement());
    if !question.part.is_valid() {
        return Err(StoreFailure::internal("a question of an exchange is too large, or in no order").into());
    }
    // A node that is no primary may hold copies for them, and asks what became of these.
    let asks = if matches!(question.part, ExchangePart::Keys(_)) { here.node_id() } else { from };
    if !is_pair(&placement, here.node_id(), class, asks) {
        return Err(busy("one of the two nodes is no primary of the class"));
    }
    let home = placement.home(class.partition);
    let is_of_proof = matches!(question.part, ExchangePart::Keys(_) | ExchangePart::Mark(_));
    let is_in_time = !home.is_changing() || is_of_proof && home.phase() == Phase::Pending;
    if !is_in_time || home.version() != question.home_version {
        return Err(busy("the home is changing, or the two nodes know other versions of it"));
    }
    check_class_print(here, class, question.class_print)?;
    // What expires in a slot that passes may be gone here already.
    if question.first_slot != NO_SLOTS && !is_to_come(question.first_slot, here.now()) {
        return Err(busy("the clocks of the two nodes differ by more than an hour"));
    }
    Ok(())
}

/// Refuses if the two nodes know other keys in a class.
fn check_class_print(here: &dyn RepairHost, class: ClassId, class_print: u64) -> Result<(), Error> {
    if here.buckets().snapshot().class_print(class.n) == class_print {
        return Ok(());
    }
    Err(busy("an n_val is changing, or the two nodes know other properties of buckets"))
}
