//! Two or three replicas of one class as plain data, and exchanges between them, step by step. One
//! number decides everything that happens.

use crate::exchange::lists::{Item, is_lacked_by_sender, lacked};
use crate::exchange::machine::{Action, Begin, Event, Exchange, marked_seq};
use crate::exchange::outlines::outlines;
use crate::exchange::sums::{Cut, Sums};
use crate::exchange::verdict::Witness;
use crate::exchange::{KeyHeld, ListQuestion, RootAnswer, Standing};
use ombak_kv::repair_host::{BrokenRule, is_broken};
use ombak_kv::repair_host::{Known, Marks, PeerStore, Towards};
use ombak_kv::replica::Held;
use ombak_kv::{ClassId, break_rule};
use ombak_types::NodeId;
use std::collections::BTreeMap;

const CLASS: ClassId = ClassId { partition: 0, n: 3 };

/// A rule that is broken for as long as this lives.
pub(super) struct Broken;

impl Broken {
    pub(super) fn rule(rule: BrokenRule) -> Self {
        break_rule(Some(rule));
        Self
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        break_rule(None);
    }
}

/// Numbers that look random (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scatter(self.0)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

const fn scatter(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A version: a set of events, as bits. It descends from all of its subsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) events: u64,
    pub(super) seq: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Replica {
    pub(super) is_up: bool,
    pub(super) is_full: bool,
    pub(super) store: PeerStore,
    pub(super) last_seq: u64,
    pub(super) data: BTreeMap<u8, Record>,
    /// What a loss of power leaves.
    pub(super) synced: BTreeMap<u8, Record>,
    pub(super) marks: Marks,
    seen_seq: BTreeMap<usize, u64>,
    pub(super) back: BTreeMap<usize, Vec<(Item, u8, u64)>>,
}

fn node(number: usize) -> NodeId {
    NodeId::new(number as u64 + 1)
}

fn range_of_key(key: u8) -> u32 {
    u32::from(key) * 150
}

fn mix(key: u8, events: u64) -> u64 {
    scatter(scatter(u64::from(key) + 1) ^ events)
}

impl Replica {
    pub(super) fn new(number: usize) -> Self {
        Self {
            is_up: true,
            is_full: true,
            store: PeerStore { store_id: 100 + number as u64, token: 200 + number as u64 },
            last_seq: 0,
            data: BTreeMap::new(),
            synced: BTreeMap::new(),
            marks: Marks::default(),
            seen_seq: BTreeMap::new(),
            back: BTreeMap::new(),
        }
    }

    pub(super) fn events(&self, key: u8) -> u64 {
        self.data.get(&key).map_or(0, |record| record.events)
    }

    /// Merges a version.
    pub(super) fn store(&mut self, key: u8, events: u64) {
        let merged = self.events(key) | events;
        if merged != self.events(key) {
            self.last_seq += 1;
            self.data.insert(key, Record { events: merged, seq: self.last_seq });
        }
    }

    /// Removes a version, if it is still that one. What a loss of power would bring back is removed
    /// again, so the model does not bring it back.
    pub(super) fn remove(&mut self, key: u8, events: u64) -> bool {
        let is_there = self.events(key) == events && events != 0;
        if is_there {
            self.data.remove(&key);
            self.synced.remove(&key);
        }
        is_there
    }

    pub(super) fn sync(&mut self) {
        self.synced = self.data.clone();
    }

    /// Syncs before an answer, unless that rule is broken.
    fn sync_to_answer(&mut self) {
        if !is_broken(BrokenRule::MarksFollowSyncs) {
            self.sync();
        }
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.data.iter().for_each(|(key, record)| sums.add(range_of_key(*key), mix(*key, record.events)));
        sums
    }

    fn items(&self, ranges: &[u32]) -> Vec<(Item, u8, u64)> {
        let of_ranges = self.data.iter().filter(|(key, _)| ranges.contains(&range_of_key(**key)));
        of_ranges
            .map(|(key, record)| (Item { mix: mix(*key, record.events), seq: record.seq }, *key, record.events))
            .collect()
    }

    fn held(&self, key: u8, events: u64) -> KeyHeld {
        KeyHeld::Readable(match self.events(key) {
            0 => Held::Nothing,
            own if own == events => Held::Same,
            own if own & events == events => Held::Covers,
            own if own & events == own => Held::Less,
            _ => Held::Other,
        })
    }

    fn standing(&self) -> Standing {
        let PeerStore { store_id, token } = self.store;
        if self.is_full {
            Standing { is_full: true, is_lost: false, store_id, token, seq: self.last_seq.max(1) }
        } else {
            Standing::default()
        }
    }

    /// Whether everything up to a seq was included at another replica, as that one knows.
    pub(super) fn is_known_at(&self, from: usize, there: &Self, seq: u64) -> bool {
        let known = there.marks.known(CLASS, node(from), self.store.store_id, there.store);
        there.is_full && known.is_some_and(|known| known.seq >= seq)
    }
}

/// An exchange that is under way.
pub(super) struct Run {
    pub(super) from: usize,
    pub(super) to: usize,
    exchange: Exchange,
    action: Action,
    items: Vec<(Item, u8, u64)>,
    own_store: u64,
}

impl Run {
    /// Begins an exchange, or the way back of an exchange of the other side.
    pub(super) fn begin(replicas: &mut [Replica], from: usize, to: usize, is_way_back: bool) -> Self {
        let own = &mut replicas[from];
        own.sync_to_answer();
        let items = if is_way_back { own.back.remove(&to).unwrap_or_default() } else { Vec::new() };
        let own_store = own.store.store_id;
        let marks = own.marks.towards.values().filter(|mark| mark.own_store == own_store);
        let (exchange, action) = Exchange::begin(Begin {
            is_full: own.is_full,
            cut: Cut { seq: own.last_seq, through: own.last_seq, sums: own.sums() },
            mark: own.marks.towards(CLASS, node(to), own_store),
            highest_mark: marks.map(|mark| mark.seq).max().unwrap_or_default(),
            own_store,
            doubt_to: 0,
            way_back: is_way_back.then(|| items.iter().map(|(item, ..)| *item).collect()),
        });
        Self { from, to, exchange, action, items, own_store }
    }

    /// What an exchange has repaired and dropped.
    pub(super) fn changes(&self) -> u64 {
        let tally = self.exchange.tally();
        tally.repaired + tally.dropped
    }

    /// Takes a step. Returns whether the exchange goes on. Some answers are lost, and some
    /// questions arrive twice.
    pub(super) fn step(&mut self, replicas: &mut [Replica], random: &mut Random, is_calm: bool) -> bool {
        if !replicas[self.from].is_up || !replicas[self.to].is_up {
            return false;
        }
        let is_lost = !is_calm && random.one_in(20);
        let is_twice = !is_calm && random.one_in(10);
        // Some copies are refused.
        let is_refused = !is_calm && random.one_in(10);
        if is_twice {
            let _ = self.take(replicas, is_refused);
        }
        match self.take(replicas, is_refused) {
            Some(event) if !is_lost => {
                self.action = self.exchange.on(event);
                true
            }
            _ => false,
        }
    }

    fn take(&mut self, replicas: &mut [Replica], is_refused: bool) -> Option<Event> {
        let (from, to) = (self.from, self.to);
        Some(match self.action.clone() {
            Action::End(_) => return None,
            Action::Pause => Event::Resumed(replicas[from].sums()),
            Action::List(ranges) => {
                self.items = replicas[from].items(&ranges);
                Event::Listed { ranges, items: self.items.iter().map(|(item, ..)| *item).collect() }
            }
            Action::Push(places) if is_refused => Event::Pushed(vec![false; places.len()]),
            Action::Push(places) => {
                let copies: Vec<_> = places.iter().map(|place| self.items[*place]).collect();
                for (_, key, events) in copies {
                    if replicas[from].events(key) == events {
                        replicas[to].store(key, events);
                    }
                }
                replicas[to].sync_to_answer();
                Event::Pushed(vec![true; places.len()])
            }
            Action::Drop(places) => {
                let dropped = places.iter().map(|place| {
                    let (_, key, events) = self.items[*place];
                    replicas[from].remove(key, events)
                });
                Event::Dropped(dropped.collect())
            }
            Action::Keep(mark) => {
                replicas[from].marks.keep(CLASS, node(to), mark);
                Event::Kept
            }
            Action::AskWitnesses(places) => {
                let others = (0..replicas.len()).filter(|other| *other != from && *other != to);
                let others: Vec<usize> = others.collect();
                let mut witness = |other: usize| {
                    let mark = replicas[from].marks.towards(CLASS, node(other), self.own_store);
                    self.witness(&mut replicas[other], &places, mark)
                };
                Event::Witnessed(others.into_iter().map(&mut witness).collect())
            }
            Action::Compare(places, peer) => {
                let mark = replicas[from].marks.towards(CLASS, node(to), self.own_store);
                let Witness { is_full, marked_seq, held } = self.witness(&mut replicas[to], &places, mark);
                Event::Held { is_reliable: is_full && replicas[to].store == peer, marked_seq, held }
            }
            question => self.ask(&mut replicas[to], question)?,
        })
    }

    fn witness(&self, other: &mut Replica, places: &[usize], mark: Option<Towards>) -> Witness {
        if !other.is_up {
            return Witness::silent();
        }
        other.sync_to_answer();
        let held = |place: &usize| {
            let (_, key, events) = self.items[*place];
            other.held(key, events)
        };
        let own = mark.map_or(0, |mark| marked_seq(&mark, other.standing()));
        let known = other.marks.known(CLASS, node(self.from), self.own_store, other.store);
        let marked_seq = own.max(known.map_or(0, |known| known.seq));
        Witness { is_full: other.is_full, marked_seq, held: places.iter().map(held).collect() }
    }

    fn ask(&self, there: &mut Replica, question: Action) -> Option<Event> {
        there.sync_to_answer();
        Some(match question {
            Action::AskRoot { seq, sum, .. } => Event::Root(self.answer_root(there, seq, sum)),
            Action::AskGroups => Event::Sums(there.sums().groups()),
            Action::AskOutlines(groups) => Event::Outlines(outlines(&there.sums(), groups)),
            Action::AskRanges(groups) => Event::Sums(there.sums().of_groups(groups)),
            Action::AskSome(ranges) => Event::Sums(there.sums().of(&ranges)),
            Action::SendList(list) => Event::Lacked(self.answer_list(there, &list)),
            Action::Mark { seq, token } => {
                let is_noted = there.is_full && there.store.token == token;
                if is_noted {
                    self.note(there, seq);
                }
                Event::Marked(if is_noted { there.standing().seq } else { 0 })
            }
            _ => return None,
        })
    }

    fn note(&self, there: &mut Replica, seq: u64) {
        let known = Known { store: self.own_store, seq, own: there.store, own_seq: there.last_seq };
        there.marks.note(CLASS, node(self.from), known);
    }

    fn answer_root(&self, there: &mut Replica, seq: u64, sum: u64) -> RootAnswer {
        let standing = there.standing();
        if !there.is_full {
            return RootAnswer { is_same: false, standing, known_seq: 0 };
        }
        let is_same = there.sums().root() == sum;
        if is_same {
            self.note(there, seq);
        } else {
            there.seen_seq.insert(self.from, there.last_seq);
            there.back.remove(&self.from);
        }
        let known = there.marks.known(CLASS, node(self.from), self.own_store, there.store);
        RootAnswer { is_same, standing, known_seq: known.map_or(0, |known| known.seq) }
    }

    fn answer_list(&self, there: &mut Replica, list: &ListQuestion) -> Vec<u64> {
        let items = there.items(&list.ranges);
        let seen_seq = there.seen_seq.get(&self.from).copied().unwrap_or_default();
        let is_to_bring = |(item, ..): &&(Item, u8, u64)| item.seq <= seen_seq && is_lacked_by_sender(list, item.mix);
        if there.is_full {
            let back: Vec<_> = items.iter().filter(is_to_bring).copied().collect();
            there.back.insert(self.from, back);
        }
        let mut own: Vec<u64> = items.iter().map(|(item, ..)| item.mix).collect();
        own.sort_unstable();
        lacked(list, &own)
    }
}
