//! Foreign data: what the stores of this node hold of classes of which it is no primary
//! (docs/design/replication.md §1).
//!
//! What it is: counts in memory, by which the node knows without a look into its stores that it
//! holds nothing for others, and the bytes that it does hold. Nothing of it is on disk. After a
//! start, and after a change of the ring, nothing is known until a fold over the keys has ended.
//!
//! What it is not: it moves no data.
//!
//! The order of steps matters (§6). A copy is counted under its key's lock, before it is stored. A
//! fold reads the count, waits until every lock was free once, and then takes its snapshot. So the
//! snapshot has every copy that the count covers.

use super::roles::rank_in_force;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::partition::Partition;
use crate::replica::ClassId;
use ombak_ring::RingVersion;
use ombak_ring::placement::HomePlacement;
use ombak_types::{Error, NodeId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The n of copies whose bucket type this node does not know yet. No bucket has it.
pub const UNKNOWN_N: u32 = 0;

/// The classes of a home of which this node has become a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoLongerForeign {
    pub(crate) partition: u32,
    /// The largest n that was foreign.
    pub(crate) up_to: u32,
    /// Whether it was not known what this node held.
    was_unknown: bool,
}

/// The copies of one foreign class.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Number of copies that were begun since the start.
    begun: u64,
    /// The value of `begun` up to which nothing is left; `None` after a fold that left something.
    clean_at: Option<u64>,
    /// The copies that are here, about.
    held: Amount,
}

impl Counts {
    fn is_clean(&self) -> bool {
        self.clean_at == Some(self.begun)
    }
}

/// A number of copies and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of keys.
    pub keys: u64,
    /// Bytes of keys, heads and values, as far as the store knows them without reading.
    pub bytes: u64,
}

impl Amount {
    fn less(self, other: Self) -> Self {
        Self { keys: self.keys.saturating_sub(other.keys), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.keys += other.keys;
        self.bytes += other.bytes;
    }
}

#[derive(Default)]
struct Place {
    /// The place of this node among the distinct owners of the home partition, from 0. It is a
    /// primary of the classes with a larger n.
    rank: AtomicU32,
    /// Whether there may be foreign copies.
    may_have: AtomicBool,
    classes: Mutex<BTreeMap<u32, Counts>>,
    /// When everything that was here had been proved at all primaries, and stays only because the
    /// disk has no room for its removal: the version of the home, and how many copies had been
    /// begun.
    given: Mutex<Option<(RingVersion, u64)>>,
    /// Whether no fold has ended since the start or since the ring changed.
    is_unknown: AtomicBool,
}

/// A copy that is being stored for other nodes. When this is dropped, the difference that the write
/// made is counted: a version that replaces another one counts once.
pub struct ForeignCopy<'a> {
    foreign: &'a ForeignData,
    class: ClassId,
    partition: &'a Partition,
    key: &'a [u8],
    bytes_before: Option<u64>,
}

impl Drop for ForeignCopy<'_> {
    fn drop(&mut self) {
        let amount = |bytes: Option<u64>| Amount { keys: u64::from(bytes.is_some()), bytes: bytes.unwrap_or(0) };
        let after = bytes_of(self.partition, self.key);
        self.foreign.changed(self.class, amount(self.bytes_before), amount(after));
    }
}

/// The bytes of a copy that is not set aside, as far as the store knows them without reading.
fn bytes_of(partition: &Partition, key: &[u8]) -> Option<u64> {
    let is_set_aside = || partition.read_set_aside(key).is_ok_and(|found| found.is_some());
    let bytes = partition.store().record_bytes(key).ok().flatten()?;
    (partition.set_aside_to() == 0 || !is_set_aside()).then_some(bytes)
}

/// What a fold over a partition began with.
pub struct FoldBegin(BTreeMap<u32, Counts>);

/// The foreign data of all partitions of this node.
pub struct ForeignData {
    places: Box<[Place]>,
    /// The bytes of all foreign copies, about.
    bytes: AtomicU64,
    bytes_max: u64,
}

impl ForeignData {
    pub(crate) fn new(ring_size: usize, bytes_max: u64) -> Self {
        Self { places: (0..ring_size).map(|_| Place::default()).collect(), bytes: AtomicU64::new(0), bytes_max }
    }

    /// The homes, each with the place of this node among its owners.
    fn ranks<'a>(
        &'a self,
        homes: &'a [HomePlacement<'a>],
        here: NodeId,
    ) -> impl Iterator<Item = (u32, u32, &'a Place)> {
        homes.iter().filter_map(move |home| {
            let place = self.places.get(home.home() as usize)?;
            let rank = match is_broken(BrokenRule::OldSetsKeepTheirCopies) {
                true => rank_in_force(home, here),
                false => home.rank(here).unwrap_or(u32::MAX),
            };
            Some((home.home(), rank, place))
        })
    }

    /// Begins to take the roles of this node from a placement that is about to be in force: what
    /// becomes foreign counts as foreign from now on.
    pub(crate) fn begin_placement(&self, changed: &[HomePlacement<'_>], here: NodeId) {
        for (rank, place) in self.ranks(changed, here).map(|(_, rank, place)| (rank, place)) {
            if rank <= place.rank.load(Ordering::SeqCst) {
                continue;
            }
            place.is_unknown.store(true, Ordering::SeqCst);
            place.may_have.store(true, Ordering::SeqCst);
            place.rank.store(rank, Ordering::SeqCst);
        }
    }

    /// Takes the roles of this node from a placement that is in force. Until the next folds nothing
    /// is known. Returns the homes in which classes are not foreign any more.
    pub(crate) fn set_placement(&self, changed: &[HomePlacement<'_>], here: NodeId) -> Vec<NoLongerForeign> {
        let mut nearer = Vec::new();
        for (partition, rank, place) in self.ranks(changed, here) {
            let before = place.rank.swap(rank, Ordering::SeqCst);
            let was_unknown = place.is_unknown.load(Ordering::SeqCst);
            if rank < before {
                nearer.push(NoLongerForeign { partition, up_to: before, was_unknown });
            }
            if rank == 0 && before == 0 {
                place.is_unknown.store(false, Ordering::SeqCst);
                place.may_have.store(false, Ordering::SeqCst);
                place.classes.lock().clear();
            } else if rank != before || was_unknown {
                place.is_unknown.store(true, Ordering::SeqCst);
                place.may_have.store(true, Ordering::SeqCst);
            }
        }
        self.count_bytes();
        nearer
    }

    /// Whether this node is no primary of a class.
    pub fn is_foreign(&self, class: ClassId) -> bool {
        let place = self.places.get(class.partition as usize);
        place.is_some_and(|place| is_foreign_at(place.rank.load(Ordering::Relaxed), class.n))
    }

    /// Begins to store a copy here. The caller holds the lock of the key. `None` if this node is a
    /// primary of the class. Refuses the copy when this node holds too much for others: hints are
    /// never dropped (docs/design/replication.md §4). Also returns whether the class had no foreign
    /// copy before.
    pub(crate) fn begin_copy<'a>(
        &'a self,
        partition: &'a Partition,
        n: u32,
        key: &'a [u8],
    ) -> Result<Option<(ForeignCopy<'a>, bool)>, Error> {
        let class = ClassId { partition: partition.number(), n };
        let Some(was_clean) = self.begin(class)? else { return Ok(None) };
        let bytes_before = bytes_of(partition, key);
        Ok(Some((ForeignCopy { foreign: self, class, partition, key, bytes_before }, was_clean)))
    }

    fn begin(&self, class: ClassId) -> Result<Option<bool>, Error> {
        let Some(place) = self.places.get(class.partition as usize) else { return Ok(None) };
        if !is_foreign_at(place.rank.load(Ordering::SeqCst), class.n) {
            return Ok(None);
        }
        if self.bytes.load(Ordering::Relaxed) >= self.bytes_max {
            return Err(Error::Overload);
        }
        let mut classes = place.classes.lock();
        let counts = classes.entry(class.n).or_insert(Counts { clean_at: Some(0), ..Counts::default() });
        let was_clean = counts.is_clean();
        counts.begun += 1;
        place.may_have.store(true, Ordering::SeqCst);
        Ok(Some(was_clean))
    }

    /// Counts what a write has changed.
    fn changed(&self, class: ClassId, before: Amount, after: Amount) {
        let Some(place) = self.places.get(class.partition as usize) else { return };
        if let Some(counts) = place.classes.lock().get_mut(&class.n) {
            counts.held += after;
            counts.held = counts.held.less(before);
        }
        let change = |bytes: u64| Some((bytes + after.bytes).saturating_sub(before.bytes));
        // The change always succeeds.
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    /// Whether a partition may hold foreign copies.
    #[cfg(test)]
    fn may_have(&self, partition: u32) -> bool {
        self.places.get(partition as usize).is_some_and(|place| place.may_have.load(Ordering::SeqCst))
    }

    /// Whether no fold over a partition has ended since the start or since the ring changed.
    pub fn is_unknown(&self, partition: u32) -> bool {
        self.places.get(partition as usize).is_some_and(|place| place.is_unknown.load(Ordering::SeqCst))
    }

    /// Whether it is known that this node holds no copy of a class of which it is no primary. A
    /// caller that has raised a fence first, and gets true, needs not look at keys
    /// (docs/design/replication.md §6).
    pub fn holds_nothing(&self, class: ClassId) -> bool {
        let Some(place) = self.places.get(class.partition as usize) else { return true };
        if place.is_unknown.load(Ordering::SeqCst) {
            return false;
        }
        let classes = place.classes.lock();
        let is_clean = |n| classes.get(&n).is_none_or(Counts::is_clean);
        is_clean(class.n) && is_clean(UNKNOWN_N)
    }

    /// The number of copies of a class that were begun since the start; none if this node may hold
    /// some ([`Self::holds_nothing`]).
    pub fn begun_if_nothing_is_held(&self, class: ClassId) -> Option<u64> {
        if !self.holds_nothing(class) {
            return None;
        }
        let place = self.places.get(class.partition as usize)?;
        let classes = place.classes.lock();
        let begun = |n| classes.get(&n).map_or(0, |counts| counts.begun);
        Some(begun(class.n) + begun(UNKNOWN_N))
    }

    /// Whether this node may hold copies that it took for others of a class of which it has become
    /// a primary. The caller has waited until every lock of the partition was free once.
    pub(crate) fn may_have_held(&self, nearer: NoLongerForeign, n: u32) -> bool {
        let Some(place) = self.places.get(nearer.partition as usize) else { return false };
        let classes = place.classes.lock();
        // Copies of a type that is not known yet may turn out to be of the class.
        let may_have = |n| classes.get(&n).is_some_and(|counts: &Counts| !counts.is_clean());
        nearer.was_unknown || may_have(n) || may_have(UNKNOWN_N)
    }

    /// Begins a fold. After this the caller waits until every lock of the partition was free once,
    /// and takes its snapshot then.
    pub fn begin_fold(&self, partition: u32) -> FoldBegin {
        FoldBegin(self.places.get(partition as usize).map(|place| place.classes.lock().clone()).unwrap_or_default())
    }

    /// Notes what is held at the snapshot of a fold, which has just been taken. A copy that was
    /// being stored when the fold began is in the snapshot, and must not count twice.
    pub fn note_held(&self, partition: u32, begin: &mut FoldBegin) {
        let Some(place) = self.places.get(partition as usize) else { return };
        for (n, counts) in &*place.classes.lock() {
            begin.0.entry(*n).or_default().held = counts.held;
        }
    }

    /// Ends a fold over the foreign copies of a partition. By n, it has left some of the copies
    /// that it visited, and removed the others. With `is_whole` it has visited everything, and
    /// otherwise only what was new.
    pub fn end_fold(
        &self,
        partition: u32,
        begin: &FoldBegin,
        left: &BTreeMap<u32, Amount>,
        removed: &BTreeMap<u32, Amount>,
        is_whole: bool,
    ) {
        let Some(place) = self.places.get(partition as usize) else { return };
        let mut classes = place.classes.lock();
        for n in left.keys() {
            classes.entry(*n).or_default();
        }
        let mut all_clean = true;
        for (n, counts) in classes.iter_mut() {
            let before = begin.0.get(n).copied().unwrap_or_default();
            let left = left.get(n).copied().unwrap_or_default();
            if is_whole {
                // What was counted since the fold began stays counted.
                counts.held = counts.held.less(before.held);
                counts.held += left;
                counts.clean_at = (left.keys == 0).then_some(before.begun);
            } else {
                counts.held = counts.held.less(removed.get(n).copied().unwrap_or_default());
            }
            all_clean &= counts.is_clean();
        }
        if is_whole {
            place.is_unknown.store(false, Ordering::SeqCst);
        }
        // A copy that begins sets this again under the same lock.
        place.may_have.store(!all_clean || !is_whole, Ordering::SeqCst);
        drop(classes);
        self.count_bytes();
    }

    /// Notes that a fold over all of a partition, which has ended, has found everything proved at
    /// all primaries in this version of the home, or that it has not.
    pub fn note_given(&self, partition: u32, begin: &FoldBegin, home_version: Option<RingVersion>) {
        let Some(place) = self.places.get(partition as usize) else { return };
        let begun = begin.0.values().map(|counts| counts.begun).sum();
        *place.given.lock() = home_version.map(|version| (version, begun));
    }

    /// Whether nothing is here that was not proved at all primaries of a home with this version.
    pub fn is_given(&self, partition: u32, home_version: RingVersion) -> bool {
        let given = self.places.get(partition as usize).and_then(|place| *place.given.lock());
        given == Some((home_version, self.begun(partition))) && !self.is_unknown(partition)
    }

    fn count_bytes(&self) {
        let bytes: u64 = (0..self.places.len()).map(|partition| self.amount_of(partition as u32).bytes).sum();
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The foreign copies of a partition, about.
    pub fn amount_of(&self, partition: u32) -> Amount {
        let mut amount = Amount::default();
        if let Some(place) = self.places.get(partition as usize) {
            place.classes.lock().values().for_each(|counts| amount += counts.held);
        }
        amount
    }

    /// The foreign copies of a partition, about, by n.
    pub fn amounts_of(&self, partition: u32) -> BTreeMap<u32, Amount> {
        let place = self.places.get(partition as usize);
        place.map_or_else(BTreeMap::new, |place| {
            place.classes.lock().iter().map(|(n, counts)| (*n, counts.held)).collect()
        })
    }

    /// The partitions that may hold foreign copies.
    pub fn partitions(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.places).filter(|(_, place)| place.may_have.load(Ordering::SeqCst)).map(|(number, _)| number)
    }

    /// The number of copies that were begun in a partition since the start.
    pub fn begun(&self, partition: u32) -> u64 {
        let place = self.places.get(partition as usize);
        place.map_or(0, |place| place.classes.lock().values().map(|counts| counts.begun).sum())
    }
}

/// Whether a class is foreign to a node with this place among the owners.
fn is_foreign_at(rank: u32, n: u32) -> bool {
    /// A class of a larger n does not occur where the rule is broken on purpose.
    const LARGEST_N: u32 = 5;
    if is_broken(BrokenRule::HintsGoByClass) { rank >= LARGEST_N } else { n <= rank }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_ring::Ring;
    use ombak_ring::placement::Placement;
    use std::sync::Arc;

    const HERE: NodeId = NodeId::new(3);

    fn placement(owners: &[NodeId], version: RingVersion) -> Placement {
        Placement::of_ring(Arc::new(Ring::from_owners(owners, version).unwrap()))
    }

    fn foreign(bytes_max: u64) -> ForeignData {
        let owners: Vec<NodeId> = (1..=4).cycle().take(8).map(NodeId::new).collect();
        let foreign = ForeignData::new(8, bytes_max);
        foreign.set_placement(&placement(&owners, RingVersion::first(1)).homes().collect::<Vec<_>>(), HERE);
        foreign
    }

    const fn class(partition: u32, n: u32) -> ClassId {
        ClassId { partition, n }
    }

    fn fold(foreign: &ForeignData, partition: u32, left: &[(u32, u64)], meanwhile: impl FnOnce()) {
        let begin = foreign.begin_fold(partition);
        meanwhile();
        let left = left.iter().map(|(n, keys)| (*n, Amount { keys: *keys, bytes: 10 * keys })).collect();
        foreign.end_fold(partition, &begin, &left, &BTreeMap::new(), true);
    }

    #[test]
    fn a_copy_that_is_being_stored_when_a_fold_begins_counts_once() {
        let foreign = foreign(u64::MAX);
        assert_eq!(foreign.begin(class(0, 2)), Ok(Some(true)));
        let mut begin = foreign.begin_fold(0);
        foreign.changed(class(0, 2), Amount::default(), Amount { keys: 1, bytes: 10 });
        foreign.note_held(0, &mut begin);
        let left = BTreeMap::from([(2, Amount { keys: 1, bytes: 10 })]);
        foreign.end_fold(0, &begin, &left, &BTreeMap::new(), true);
        assert_eq!(foreign.amount_of(0), Amount { keys: 1, bytes: 10 });
    }

    #[test]
    fn the_first_copy_of_a_class_counts_once_if_it_is_stored_before_the_snapshot_of_a_fold() {
        let foreign = foreign(u64::MAX);
        let mut begin = foreign.begin_fold(0);
        assert_eq!(copy(&foreign, class(0, 2), 0, 10), Ok(Some(true)));
        foreign.note_held(0, &mut begin);
        let left = BTreeMap::from([(2, Amount { keys: 1, bytes: 10 })]);
        foreign.end_fold(0, &begin, &left, &BTreeMap::new(), true);
        assert_eq!(foreign.amount_of(0), Amount { keys: 1, bytes: 10 });
        assert!(!foreign.holds_nothing(class(0, 2)));
    }

    /// Stores a copy of this many bytes in the place of another one.
    fn copy(foreign: &ForeignData, class: ClassId, before: u64, after: u64) -> Result<Option<bool>, Error> {
        let begun = foreign.begin(class)?;
        if begun.is_some() {
            let amount = |bytes| Amount { keys: u64::from(bytes > 0), bytes };
            foreign.changed(class, amount(before), amount(after));
        }
        Ok(begun)
    }

    #[test]
    fn a_class_and_not_a_partition_is_foreign() {
        let foreign = foreign(u64::MAX);
        // The owners of partition 0 are 1, 2, 3, 4.
        assert!(foreign.is_foreign(class(0, 1)) && foreign.is_foreign(class(0, 2)));
        assert!(!foreign.is_foreign(class(0, 3)) && !foreign.is_foreign(class(0, 5)));
        assert!(!foreign.is_foreign(class(2, 1)), "the node is its first owner");
        assert!(!foreign.holds_nothing(class(0, 2)), "nothing is known before the first fold");
        assert!(foreign.holds_nothing(class(2, 1)));
        assert_eq!(foreign.partitions().collect::<Vec<_>>(), [0, 1, 3, 4, 5, 7]);
    }

    #[test]
    fn a_copy_that_arrives_during_a_fold_is_not_forgotten() {
        let foreign = foreign(u64::MAX);
        fold(&foreign, 0, &[], || ());
        assert!(foreign.holds_nothing(class(0, 2)) && !foreign.may_have(0));
        assert_eq!(copy(&foreign, class(0, 2), 0, 10), Ok(Some(true)));
        assert!(!foreign.holds_nothing(class(0, 2)) && foreign.may_have(0));
        assert!(foreign.holds_nothing(class(0, 1)));
        fold(&foreign, 0, &[], || assert_eq!(copy(&foreign, class(0, 2), 0, 10), Ok(Some(false))));
        assert!(!foreign.holds_nothing(class(0, 2)) && foreign.may_have(0));
        assert_eq!(foreign.amount_of(0), Amount { keys: 1, bytes: 10 });
        fold(&foreign, 0, &[(2, 1)], || ());
        assert!(!foreign.holds_nothing(class(0, 2)), "the fold has left it");
        fold(&foreign, 0, &[], || ());
        assert!(foreign.holds_nothing(class(0, 2)) && !foreign.may_have(0));
        assert_eq!(foreign.amount_of(0), Amount::default());
    }

    #[test]
    fn what_was_proved_counts_as_given_until_another_copy_comes_or_the_home_changes() {
        let foreign = foreign(u64::MAX);
        let (now, later) = (RingVersion::first(1), RingVersion::first(1).next());
        assert_eq!(copy(&foreign, class(0, 2), 0, 10), Ok(Some(true)));
        let begin = foreign.begin_fold(0);
        foreign.note_given(0, &begin, Some(now));
        assert!(!foreign.is_given(0, now), "no fold has ended");
        fold(&foreign, 0, &[(2, 1)], || ());
        assert!(foreign.is_given(0, now) && !foreign.is_given(0, later));
        assert!(!foreign.holds_nothing(class(0, 2)), "the copy is still here");
        assert_eq!(copy(&foreign, class(0, 2), 10, 20), Ok(Some(false)));
        assert!(!foreign.is_given(0, now));
        let begin = foreign.begin_fold(0);
        foreign.note_given(0, &begin, None);
        assert!(!foreign.is_given(0, now));
    }

    #[test]
    fn copies_of_unknown_types_keep_every_class_in_doubt() {
        let foreign = foreign(u64::MAX);
        fold(&foreign, 0, &[(UNKNOWN_N, 1)], || ());
        assert!(!foreign.holds_nothing(class(0, 1)) && foreign.may_have(0));
        let nearer = NoLongerForeign { partition: 0, up_to: 2, was_unknown: false };
        assert!(foreign.may_have_held(nearer, 1), "the node may owe them as a primary");
        fold(&foreign, 0, &[], || ());
        assert!(!foreign.may_have_held(nearer, 1));
    }

    #[test]
    fn too_much_is_refused_and_only_if_foreign() {
        let foreign = foreign(20);
        assert_eq!(copy(&foreign, class(0, 3), 0, 100), Ok(None), "its own class");
        assert_eq!(copy(&foreign, class(0, 2), 0, 20), Ok(Some(true)));
        assert_eq!(copy(&foreign, class(1, 1), 0, 1), Err(Error::Overload));
        assert_eq!(copy(&foreign, class(0, 3), 0, 100), Ok(None));
        fold(&foreign, 0, &[], || ());
        assert_eq!(copy(&foreign, class(1, 1), 0, 1), Ok(Some(true)));
    }

    #[test]
    fn a_key_that_is_written_again_counts_once_whatever_passes_visit_it() {
        let foreign = foreign(1_000);
        let mut bytes = 0;
        for round in 1..200 {
            let begin = foreign.begin_fold(0);
            assert_eq!(copy(&foreign, class(0, 2), bytes, 100 + round), Ok(Some(round == 1)), "round {round}");
            bytes = 100 + round;
            // A pass over what is new leaves it, because a primary is down.
            let left = BTreeMap::from([(2, Amount { keys: 1, bytes })]);
            foreign.end_fold(0, &begin, &left, &BTreeMap::new(), false);
            assert_eq!(foreign.amount_of(0), Amount { keys: 1, bytes }, "round {round}");
        }
        let (begin, removed) = (foreign.begin_fold(0), BTreeMap::from([(2, Amount { keys: 1, bytes })]));
        foreign.end_fold(0, &begin, &BTreeMap::new(), &removed, false);
        assert_eq!(foreign.amount_of(0), Amount::default());
    }

    #[test]
    fn another_ring_makes_everything_unknown_again() {
        let foreign = foreign(u64::MAX);
        fold(&foreign, 0, &[], || ());
        let owners: Vec<NodeId> = (1..=5).cycle().take(8).map(NodeId::new).collect();
        foreign.set_placement(&placement(&owners, RingVersion::first(1).next()).homes().collect::<Vec<_>>(), HERE);
        assert!(!foreign.may_have(0), "the role is the same");
        assert!(foreign.may_have(3), "the role is another");
    }
}
