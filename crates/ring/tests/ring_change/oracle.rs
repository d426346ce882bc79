//! What was promised to clients.

use super::member::{Member, Shared};
use super::model::{Copied, Key, bits};
use super::request::Request;
use ombak_ring::placement::{Phase, Step, StepOf};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

struct Write {
    /// So many positions of the set in which gets count are to have it.
    primary: u32,
    is_acknowledged: bool,
    /// Whether all primaries of both sets acknowledged it.
    is_by_all: bool,
    /// Whether a fault destroyed all copies.
    is_excused: bool,
}

pub struct Oracle {
    writes: Vec<Vec<Write>>,
    /// Nothing was forced, nobody was marked as down and no store was lost, so quorums overlap.
    is_overlap_promised: bool,
    is_store_destroyed: bool,
    broken: Option<String>,
    /// What was removed with tombstones.
    removed: Vec<Copied>,
    had_silent_fault: bool,
    /// The keys of which a copy that came back was a part of something newer, at a member that is
    /// gone.
    pub written_over: BTreeSet<Key>,
    /// The keys of which a copy that came back left its store as it was.
    pub spread: BTreeSet<Key>,
}

impl Oracle {
    pub fn new(keys: usize) -> Self {
        Self {
            writes: (0..keys).map(|_| Vec::new()).collect(),
            is_overlap_promised: true,
            is_store_destroyed: false,
            broken: None,
            removed: vec![0; keys],
            had_silent_fault: false,
            written_over: BTreeSet::new(),
            spread: BTreeSet::new(),
        }
    }

    pub fn broken_promise(&self) -> Result<(), String> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    fn complain(&mut self, why: String) {
        self.broken.get_or_insert(why);
    }

    pub fn writes(&self, key: Key) -> usize {
        self.writes[key].len()
    }

    pub fn begin_write(&mut self, key: Key, primary: u32) -> u32 {
        self.writes[key].push(Write { primary, is_acknowledged: false, is_by_all: false, is_excused: false });
        self.writes[key].len() as u32 - 1
    }

    pub fn acknowledge(&mut self, key: Key, bit: u32, is_by_all: bool) {
        let write = &mut self.writes[key][bit as usize];
        (write.is_acknowledged, write.is_by_all) = (true, is_by_all);
    }

    pub fn forget_overlap(&mut self) {
        self.is_overlap_promised = false;
    }

    fn acknowledged(&self, key: Key) -> impl Iterator<Item = (Copied, &Write)> {
        let all = self.writes[key].iter().enumerate();
        let counts = move |bit: usize, write: &Write| {
            write.is_acknowledged && !write.is_excused && self.removed[key] & (1 << bit) == 0
        };
        all.filter(move |(bit, write)| counts(*bit, write)).map(|(bit, write)| (1 << bit, write))
    }

    /// The acknowledged writes that a get which begins now has to see.
    pub fn expected(&self, key: Key, n: u32, primary: u32) -> Copied {
        let overlapping = self.acknowledged(key).filter(|(_, write)| write.primary + primary > n);
        overlapping.fold(0, |all, (bit, _)| all | bit)
    }

    pub fn check_get(&mut self, get: &Request, node: NodeId) {
        let found = get.counted.values().fold(0, |all, copy| all | copy);
        if self.is_overlap_promised && get.expected & !found & !self.removed[get.key] != 0 {
            let counted: Vec<String> = get.counted.keys().map(NodeId::to_string).collect();
            self.complain(format!("a get at {node} from {counted:?} missed an acknowledged write of {:?}", get.class));
        }
    }

    /// Whether every acknowledged write is where a get would find it.
    pub fn check_key(&mut self, shared: &Shared, members: &BTreeMap<NodeId, Member>, key: Key, when: &str) {
        if !self.is_overlap_promised {
            return;
        }
        let class = shared.keys[key];
        let ring = shared.now().home(class).in_force();
        let rows = ring.owners_of(class.home, class.n);
        let owners: Vec<NodeId> = rows.iter().map(|row| ring.id(row.owner)).collect();
        let holds = |node: &NodeId, bit| members.get(node).is_some_and(|member| member.copy(key) & bit != 0);
        let missing = self
            .acknowledged(key)
            .find(|(bit, write)| owners.iter().filter(|node| holds(node, *bit)).count() < write.primary as usize);
        if missing.is_some() {
            self.complain(format!("{when}: an acknowledged write of {class:?} is invisible"));
        }
    }

    /// After a flip somebody has to have what every old primary had.
    pub fn check_steps(&mut self, shared: &Shared, members: &BTreeMap<NodeId, Member>, steps: &[StepOf]) {
        for StepOf { home, step, .. } in steps {
            for key in (0..shared.keys.len()).filter(|key| shared.keys[*key].home == *home) {
                self.check_key(shared, members, key, &format!("{step:?}"));
                let class = shared.keys[key];
                let placed = shared.now().home(class);
                let is_old_set_gone =
                    !placed.other_set(class.n).iter().any(|node| shared.now().members.contains_key(node));
                let is_lost =
                    |node| members.get(node).is_some_and(|member| member.lost.contains(&(class.home, class.n)));
                let is_new_set_lost = placed.replica_set(class.n).iter().any(is_lost);
                if is_old_set_gone {
                    // The operator was told. What others hold for the old set comes later.
                    self.writes[key].iter_mut().for_each(|write| write.is_by_all = false);
                }
                let is_excused = is_old_set_gone || is_new_set_lost;
                if *step != Step::Flip || placed.phase() != Phase::Flipped || is_excused {
                    continue;
                }
                let has = |bit| {
                    placed
                        .replica_set(class.n)
                        .iter()
                        .any(|node| members.get(node).is_some_and(|member| member.copy(key) & bit != 0))
                };
                if self.acknowledged(key).any(|(bit, write)| write.is_by_all && !has(bit)) {
                    self.complain(format!("the new set of {class:?} is empty after the flip"));
                }
            }
        }
    }

    pub fn removed(&self, key: Key) -> Copied {
        self.removed[key]
    }

    pub fn remove(&mut self, key: Key, copy: Copied) {
        self.removed[key] |= copy;
    }

    pub fn note_drop(&mut self, shared: &Shared, key: Key, copy: Copied) {
        // A tombstone may be dropped where the order to remove it was lost.
        if !self.had_silent_fault && shared.values(key, copy) != 0 {
            self.complain(format!("{copy:x} of {:?} was dropped, and there was no fault", shared.keys[key]));
        }
    }

    /// From now on a store may lack what it had, and so may a quorum.
    pub fn begin_fault(&mut self) {
        self.forget_overlap();
        self.had_silent_fault = true;
        self.writes.iter_mut().flatten().for_each(|write| write.is_by_all = false);
    }

    /// What only this member has is lost, and nobody is to blame.
    pub fn excuse(&mut self, shared: &Shared, members: &BTreeMap<NodeId, Member>, node: NodeId) {
        for (key, writes) in self.writes.iter_mut().enumerate() {
            let held = |member: &Member| member.copy(key) | shared.replaced(key, member.copy(key));
            let own = members.get(&node).map_or(0, held);
            let others = members.values().filter(|member| member.id != node && !member.is_doubtful(shared, key));
            let others = others.fold(0, |all, member| all | held(member));
            bits(own & !others).for_each(|bit| writes[bit].is_excused = true);
        }
    }

    /// Why a history with marks is not over: no primary may differ, for whatever reason.
    pub fn difference(&self, shared: &Shared, members: &BTreeMap<NodeId, Member>) -> Option<String> {
        let differ = |key: &Key| {
            let primaries = shared.now().primaries(shared.keys[*key]);
            let copies: Vec<Copied> = primaries.iter().map(|node| members[node].copy(*key)).collect();
            copies.windows(2).any(|pair| pair[0] != pair[1])
        };
        (0..shared.keys.len()).find(differ).map(|key| format!("the primaries of {:?} differ", shared.keys[key]))
    }

    /// Whether something that was deleted and removed is back.
    fn returned(&self, shared: &Shared, members: &BTreeMap<NodeId, Member>) -> Option<String> {
        let is_known = |key: &Key| {
            let is_merged = |member: &Member| member.marking.written_over.contains(key);
            !self.spread.contains(key) && (self.written_over.contains(key) || members.values().any(is_merged))
        };
        for (key, class) in shared.keys.iter().enumerate().filter(|(key, class)| class.n > 1 && !is_known(key)) {
            for node in shared.now().primaries(*class) {
                let back = shared.values(key, members[&node].copy(key)) & self.removed[key];
                if back != 0 {
                    return Some(format!("{node} has {back:x} of key {key}, {class:?}, which was removed"));
                }
            }
        }
        None
    }

    /// A store is destroyed. What only it has is lost, and nobody is to blame.
    pub fn destroy(&mut self, shared: &Shared, members: &BTreeMap<NodeId, Member>, destroyed: NodeId) {
        self.forget_overlap();
        self.is_store_destroyed = true;
        for (key, writes) in self.writes.iter_mut().enumerate() {
            let holds = |member: &&Member| member.id != destroyed && member.copy(key) != 0;
            // Who holds the copy for the destroyed store may have been told that it arrived there.
            let keeps = |member: &&Member| {
                let primaries = member.view(shared).primaries(shared.keys[key]);
                primaries.contains(&member.id) || !primaries.contains(&destroyed)
            };
            let others = members.values().filter(holds).filter(keeps).fold(0, |all, member| all | member.copy(key));
            let class = shared.keys[key];
            let primaries = shared.now().home(class).replica_set(class.n);
            let in_primaries = members.values().filter(holds).filter(|member| primaries.contains(&member.id));
            let in_primaries = in_primaries.fold(0, |all, member| all | member.copy(key));
            for (bit, write) in writes.iter_mut().enumerate() {
                write.is_excused |= others & (1 << bit) == 0;
                write.is_by_all &= in_primaries & (1 << bit) != 0;
            }
        }
    }

    /// After healing nothing is missing, and all primaries are equal.
    ///
    /// If a store was destroyed, a marks of what others are owed went with it, and nobody compares
    /// the primaries in this model. Then all of them still have what all of them acknowledged.
    pub fn check_end(&self, shared: &Shared, members: &BTreeMap<NodeId, Member>) -> Result<(), String> {
        if let Some(why) = self.returned(shared, members) {
            return Err(why);
        }
        for (key, class) in shared.keys.iter().enumerate() {
            let primaries = shared.now().primaries(*class);
            let copies: Vec<Copied> = primaries.iter().map(|node| members[node].copy(key)).collect();
            let (all, any) = copies.iter().fold((Copied::MAX, 0), |(all, any), copy| (all & copy, any | copy));
            let any_seen = any | shared.replaced(key, any);
            let expected = self.acknowledged(key).fold(0, |all, (bit, _)| all | bit);
            if expected & !any_seen != 0 {
                return Err(format!(
                    "an acknowledged write of key {key}, {class:?}, is lost: {copies:x?} lack some of {expected:x}"
                ));
            }
            let by_all = self.acknowledged(key).filter(|(_, write)| write.is_by_all).fold(0, |all, (bit, _)| all | bit);
            if by_all & !all != 0 {
                return Err(format!("a primary of {class:?} lacks what all had: {copies:x?} lack some of {by_all:x}"));
            }
            if !self.is_store_destroyed && all != any {
                return Err(format!("the primaries of {class:?} differ: {copies:x?}"));
            }
        }
        Ok(())
    }
}
