//! The answers of this node to another one that exchanges a class with it.
//!
//! Invariants:
//! * What an answer calls included was synced before.
//! * A mark is noted durably before the answer says so, and only if the class has been full since
//!   the exchange began.

use super::back::KeyedItem;
use super::client::{
    ExchangeAnswer, ExchangePart, ExchangeQuestion, KeyHeld, KeysAnswer, KeysQuestion, ListQuestion, MarkQuestion,
    RootAnswer, RootQuestion,
};
use super::exchanges::{Exchanges, is_lost, not_saved};
use super::folded_sums::{fold, sync};
use super::lists::{Item, is_lacked_by_sender, lacked};
use super::marks::{Known, PeerStore};
use super::pairs::{Pair, busy, is_pair};
use super::sums::RANGES;
use crate::compare::compare;
use ombak_kv::repair_host::{RepairHost, mix};
use ombak_kv::replica::{Compare, Held, HeldVersion, range_of};
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
        let class = question.class;
        match &question.part {
            ExchangePart::Root(root) => self.answer_root(here, (class, from), root, waited).map(ExchangeAnswer::Root),
            ExchangePart::Groups => Ok(ExchangeAnswer::Sums(self.cut(here, class, waited)?.sums.groups())),
            ExchangePart::Ranges { groups } => {
                Ok(ExchangeAnswer::Sums(self.cut(here, class, waited)?.sums.of_groups(*groups)))
            }
            ExchangePart::Some { ranges } => Ok(ExchangeAnswer::Sums(self.cut(here, class, waited)?.sums.of(ranges))),
            ExchangePart::List(list) => self.answer_list(here, (class, from), list, waited).map(ExchangeAnswer::Lacked),
            ExchangePart::Keys(keys) => self.answer_keys(here, (class, from), keys).map(ExchangeAnswer::Keys),
            ExchangePart::Mark(mark) => self.answer_mark(here, (class, from), mark).map(ExchangeAnswer::Marked),
        }
    }

    fn answer_root(
        &self,
        here: &dyn RepairHost,
        pair: Pair,
        root: &RootQuestion,
        waited: &Waited<'_>,
    ) -> Result<RootAnswer, Error> {
        let (class, from) = pair;
        let cut = self.cut(here, class, waited)?;
        let standing = self.standing(here, class, (root.marked_seq, cut.through))?;
        let own = PeerStore { store_id: standing.store_id, token: standing.token };
        let is_same = standing.is_full && cut.sums.root() == root.sum;
        if is_same {
            self.note(pair, Known { store: root.store_id, seq: root.seq, own, own_seq: cut.through })?;
        } else {
            // Of two nodes that exchange the same class with each other one goes first.
            if self.working_on.lock().contains(&class) && here.node_id() < from {
                return Err(busy("this node exchanges the class itself"));
            }
            self.ways_back.begin(pair, cut.seq);
        }
        let known_seq = self.known_seq(here, pair, root.store_id, own)?;
        Ok(RootAnswer { is_same, standing, known_seq })
    }

    /// Up to which seq another node's store was included here, by a mark that holds.
    fn known_seq(&self, here: &dyn RepairHost, pair: Pair, store: u64, own: PeerStore) -> Result<u64, Error> {
        let known = self.marks.read(|marks| marks.known(pair.0, pair.1, store, own));
        match known {
            Some(known) if !is_lost(here, pair.0, known.own_seq)? => Ok(known.seq),
            _ => Ok(0),
        }
    }

    /// Notes durably what of another node's store is included here.
    fn note(&self, (class, from): Pair, known: Known) -> Result<(), Error> {
        let noted = self.marks.change(|marks| marks.note(class, from, known));
        noted.map_err(|why| not_saved(&why))
    }

    fn answer_keys(&self, here: &dyn RepairHost, pair: Pair, keys: &KeysQuestion) -> Result<KeysAnswer, Error> {
        let class = pair.0;
        let partition = here.partitions().find(class.partition)?;
        let question = Compare { class, versions: keys.versions.clone(), synced: true };
        let compared = compare(here, &question)?;
        let held = keys.versions.iter().zip(compared.held);
        // The comparison has noted what it could not read.
        let of_key = |(version, held): (&HeldVersion, Held)| {
            if partition.is_known_as_unreadable(&version.key) { KeyHeld::Unreadable } else { KeyHeld::Readable(held) }
        };
        let held = held.map(of_key).collect();
        let through = sync(&partition)?;
        let standing = self.standing(here, class, (keys.marked_seq, through))?;
        let own = PeerStore { store_id: standing.store_id, token: standing.token };
        Ok(KeysAnswer { standing, known_seq: self.known_seq(here, pair, keys.store_id, own)?, held })
    }

    /// Says which versions of a list this node lacks, and remembers which of its own the other node
    /// lacks.
    fn answer_list(
        &self,
        here: &dyn RepairHost,
        pair: Pair,
        list: &ListQuestion,
        waited: &Waited<'_>,
    ) -> Result<Vec<u64>, Error> {
        let class = pair.0;
        let partition = here.partitions().find(class.partition)?;
        let seen_seq = self.ways_back.seen_seq(pair).unwrap_or_default();
        let may_bring_back = self.own_store(here, class)?.is_some();
        let (mut own, mut back) = (Vec::new(), Vec::new());
        partition.await_writers();
        fold(here, &partition, class, waited, |entry, hash| {
            if list.ranges.binary_search(&range_of(hash, RANGES as u32)).is_err() {
                return;
            }
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
        let Some(own) = self.own_store(here, pair.0)?.filter(|own| own.token == mark.token) else { return Ok(0) };
        self.note(pair, Known { store: mark.store_id, seq: mark.seq, own, own_seq })?;
        Ok(own_seq)
    }
}

/// Refuses what is no question between two primaries of a settled home.
fn check(here: &dyn RepairHost, from: NodeId, question: &ExchangeQuestion) -> Result<(), Error> {
    let (class, placement) = (question.class, here.placement());
    if !question.part.is_valid() {
        return Err(StoreFailure::internal("a question of an exchange is too large, or in no order").into());
    }
    if !is_pair(&placement, here.node_id(), class, from) {
        return Err(busy("one of the two nodes is no primary of the class"));
    }
    let home = placement.home(class.partition);
    if home.is_changing() || home.version() != question.home_version {
        return Err(busy("the home is changing, or the two nodes know other versions of it"));
    }
    Ok(())
}
