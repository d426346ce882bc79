//! One exchange of this node with another primary, as a state machine: answers in, the next step
//! out. It knows neither keys nor stores: a version is its place in the list of items.
//!
//! ```text
//!  Root --same--------------------------------------------------------------> Keeping --> ended
//!   | different                                                                  ^
//!   v                                                                            |
//!  Groups -> Ranges -> Paused -> Again -> Listing -> Sending* -> Comparing -> Witnesses
//!   |         |                    |                    ^            |           |
//!   |         |    nothing differs any more             |            v           v
//!   +---------+--------------------+--> Marking         |         Pushing -> Dropping -> Marking
//!                                                       |
//!  a way back begins here, with the keys that the other node's list lacked --+ (at Comparing)
//!
//!  an exchange of some keys alone begins with Meeting, which asks the other primary for these keys
//!  without sums, and goes on at Comparing with those that it lacks.
//!
//!  Ranges asks for the outlines of a few groups, and then for the sums of those of which several
//!  ranges differ.
//!
//!  Comparing asks the other primary for the keys that are not above all marks, and Witnesses asks
//!  the further primaries for those that it lacks or cannot read.
//! ```
//!
//! What it is not: it does not decide when an exchange begins (`schedule`), and sends nothing
//! (`steps`). An exchange that fails anywhere is given up as a whole; nothing must be undone.
//!
//! Invariants:
//! * The mark advances to the seq of the first cut, and only if every version up to that seq was
//!   found included: by equal sums, by an answer to a list, by a comparison or by a push.
//! * A version that is newer than the first cut takes no part.

use super::lists::{self, Item};
use super::outlines::{self, Shown};
use super::sums::{Cut, GroupSet, Sums, ranges_of};
use super::verdict::{Lacked, Verdict, Witness, judge};
use super::{KeyHeld, ListQuestion, RootAnswer, SOME_RANGES_MAX, Standing};
use ombak_kv::repair_host::{BrokenRule, PeerStore, Towards, is_broken};
use ombak_kv::replica::Held;
use std::collections::VecDeque;
use std::mem::take;

/// What is known when an exchange begins.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    /// Whether this node is known to hold everything of the class.
    pub(crate) is_full: bool,
    /// The sums of this node.
    pub(crate) cut: Cut,
    /// The mark of this node's store for the other node, if there is one.
    pub(crate) mark: Option<Towards>,
    /// The highest seq of the marks of this node's store for all other primaries.
    pub(crate) highest_mark: u64,
    /// The id of this node's store.
    pub(crate) own_store: u64,
    /// The seq up to which copies of this node are in doubt; 0: none is.
    pub(crate) doubt_to: u64,
    /// For a way back: the versions of this node that the other one lacks.
    pub(crate) way_back: Option<Vec<Item>>,
}

/// What has happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The answer to the first question.
    Root(RootAnswer),
    /// What the other node stands for, and holds of some keys: the answer to the first question of
    /// an exchange of these keys alone.
    Met {
        /// What it stands for, what it has noted of this node's store, and whether it is the same
        /// as at the mark.
        answer: RootAnswer,
        /// One answer for each version.
        held: Vec<KeyHeld>,
    },
    /// The sums that were asked for.
    Sums(Vec<u64>),
    /// The outlines that were asked for.
    Outlines(Vec<u64>),
    /// The pause has ended. These are the sums of this node now.
    Resumed(Sums),
    /// The versions of this node in the ranges that were asked for, or in some of them: then there
    /// were too many.
    Listed {
        /// The ranges that the items are complete for.
        ranges: Vec<u32>,
        /// The versions.
        items: Vec<Item>,
    },
    /// The mixes that the other node lacks.
    Lacked(Vec<u64>),
    /// What the other node holds of the versions that were asked for, and whether it was full and
    /// had the same store and token after that.
    Held {
        /// Whether it can be relied on.
        is_reliable: bool,
        /// Up to this seq of this node's store everything was included there, by a mark that still
        /// holds.
        marked_seq: u64,
        /// One answer for each version.
        held: Vec<KeyHeld>,
    },
    /// What the further primaries say.
    Witnessed(Vec<Witness>),
    /// For each version whether it is durably at the other node now, or gone from here.
    Pushed(Vec<bool>),
    /// For each version whether it was dropped.
    Dropped(Vec<bool>),
    /// Where the store of the other node was when it noted the mark; 0: it did not.
    Marked(u64),
    /// This node has saved the mark.
    Kept,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask the other node whether it holds the same.
    AskRoot {
        /// The seq of the cut.
        seq: u64,
        /// The sum.
        sum: u64,
        /// The seq of the other node's store in the mark; 0: there is none.
        marked_seq: u64,
    },
    /// Ask what the other node stands for, and holds of the keys of some items.
    Meet(Vec<usize>),
    /// Ask for the sums of all groups.
    AskGroups,
    /// Ask for the outlines of some groups. A node of an earlier version answers with the sums of
    /// their ranges.
    AskOutlines(GroupSet),
    /// Ask for the sums of the ranges of some groups.
    AskRanges(GroupSet),
    /// Wait for the second look, and sum up anew.
    Pause,
    /// Ask for the sums of some ranges.
    AskSome(Vec<u32>),
    /// List the versions of this node in some ranges.
    List(Vec<u32>),
    /// Ask which of some versions the other node lacks.
    SendList(ListQuestion),
    /// Ask what the other node holds of the keys of some items, and whether it is still this store.
    Compare(Vec<usize>, PeerStore),
    /// Ask the further primaries what they hold of the keys of some items.
    AskWitnesses(Vec<usize>),
    /// Bring some items, and have them proved.
    Push(Vec<usize>),
    /// Drop some items, each only if it is still that version.
    Drop(Vec<usize>),
    /// Let the other node note the mark.
    Mark {
        /// The seq.
        seq: u64,
        /// The token that the node had at the beginning.
        token: u64,
    },
    /// Save the mark of this node at the store of the other one.
    Keep(Towards),
    /// Nothing: the exchange has ended.
    End(Ended),
}

/// How an exchange has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The other node holds everything that this one held, and the mark has advanced.
    Included,
    /// Something is left: too much differed for one exchange, or it was a way back.
    Partly,
    /// Something could not be brought or noted.
    Unproved,
    /// One of the two is not full, so the class is filled first.
    NotFull,
    /// The other node has answered something else than it was asked.
    Confused,
}

/// What an exchange has repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Versions that the other node did not have and has now.
    pub(crate) repaired: u64,
    /// Versions that were removed everywhere else, and went here.
    pub(crate) dropped: u64,
    /// Versions that were left alone, because nobody could tell.
    pub(crate) withheld: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Root,
    Meeting,
    Groups,
    Ranges,
    Paused,
    Again,
    Listing,
    Sending,
    Comparing,
    Witnesses,
    Pushing,
    Dropping,
    Marking,
    Keeping,
    Ended,
}

/// An exchange that is under way.
pub(crate) struct Exchange {
    state: State,
    seq: u64,
    mark: Option<Towards>,
    highest_mark: u64,
    own_store: u64,
    doubt_to: u64,
    is_way_back: bool,
    /// Whether something was left out, so that the mark cannot advance.
    has_left: bool,
    has_unproved: bool,
    peer: PeerStore,
    /// Up to this seq everything was included in the other node's store before.
    marked_seq: u64,
    sums: Sums,
    asked: Vec<u32>,
    /// The groups that the last question for outlines was about.
    outlined: GroupSet,
    /// The ranges that outlines have shown to differ.
    shown: Vec<u32>,
    items: Vec<Item>,
    lists: VecDeque<ListQuestion>,
    /// The items that the last question was about.
    places: Vec<usize>,
    /// What the other node holds of the items that the further primaries are asked for.
    held_there: Vec<KeyHeld>,
    to_push: Vec<usize>,
    to_drop: Vec<usize>,
    tally: Tally,
}

impl Exchange {
    /// Begins an exchange.
    pub(crate) fn begin(begin: Begin) -> (Self, Action) {
        let Begin { is_full, cut: Cut { seq, sums, .. }, mark, highest_mark, own_store, doubt_to, way_back } = begin;
        let sum = sums.root();
        let mut exchange = Self {
            state: State::Root,
            seq,
            mark,
            highest_mark,
            own_store,
            doubt_to: if is_broken(BrokenRule::DoubtfulStoresOnlyReceive) { 0 } else { doubt_to },
            is_way_back: way_back.is_some(),
            has_left: way_back.is_some(),
            has_unproved: false,
            peer: PeerStore::default(),
            marked_seq: 0,
            sums,
            asked: Vec::new(),
            outlined: 0,
            shown: Vec::new(),
            items: way_back.unwrap_or_default(),
            lists: VecDeque::new(),
            places: Vec::new(),
            held_there: Vec::new(),
            to_push: Vec::new(),
            to_drop: Vec::new(),
            tally: Tally::default(),
        };
        let may_begin = is_full || is_broken(BrokenRule::DoubtfulStoresOnlyReceive);
        let first = if may_begin { exchange.ask_root(sum) } else { exchange.end(Ended::NotFull) };
        (exchange, first)
    }

    /// Begins an exchange of some keys alone, without sums. They are the way back of the beginning.
    pub(crate) fn begin_with_keys(begin: Begin) -> (Self, Action) {
        let (mut exchange, first) = Self::begin(begin);
        if exchange.state == State::Ended {
            return (exchange, first);
        }
        exchange.state = State::Meeting;
        exchange.places = (0..exchange.items.len()).collect();
        let meet = Action::Meet(exchange.places.clone());
        (exchange, meet)
    }

    fn ask_root(&self, sum: u64) -> Action {
        Action::AskRoot { seq: self.seq, sum, marked_seq: self.mark.map_or(0, |mark| mark.peer_seq) }
    }

    /// What was repaired so far.
    pub(crate) const fn tally(&self) -> Tally {
        self.tally
    }

    /// Takes an event. Returns what is to be done next.
    pub(crate) fn on(&mut self, event: Event) -> Action {
        match (self.state, event) {
            (State::Root, Event::Root(answer)) => self.on_root(answer),
            (State::Meeting, Event::Met { answer, held }) => self.on_met(answer, &held),
            (State::Groups, Event::Sums(theirs)) => self.on_groups(&theirs),
            (State::Ranges, Event::Outlines(theirs)) => self.on_outlines(&theirs),
            (State::Ranges | State::Again, Event::Sums(theirs)) => self.on_ranges(&theirs),
            (State::Paused, Event::Resumed(sums)) => self.on_resumed(sums),
            (State::Listing, Event::Listed { ranges, items }) => self.on_listed(ranges, items),
            (State::Sending, Event::Lacked(mixes)) => self.on_lacked(&mixes),
            (State::Comparing, Event::Held { is_reliable, marked_seq, held }) => {
                self.on_held(is_reliable, marked_seq, &held)
            }
            (State::Witnesses, Event::Witnessed(witnesses)) => self.on_witnessed(&witnesses),
            (State::Pushing, Event::Pushed(proved)) => self.on_pushed(&proved),
            (State::Dropping, Event::Dropped(dropped)) => self.on_dropped(&dropped),
            (State::Marking, Event::Marked(peer_seq)) => self.on_marked(peer_seq),
            (State::Keeping, Event::Kept) => self.end(Ended::Included),
            _ => self.end(Ended::Confused),
        }
    }

    fn on_root(&mut self, answer: RootAnswer) -> Action {
        let standing = answer.standing;
        if !standing.is_full {
            return self.end(Ended::NotFull);
        }
        self.meet(answer);
        if answer.is_same {
            return self.keep(standing.seq);
        }
        if self.is_way_back {
            let places = (0..self.items.len()).collect();
            return self.bring(places);
        }
        self.state = State::Groups;
        Action::AskGroups
    }

    fn on_met(&mut self, answer: RootAnswer, held: &[KeyHeld]) -> Action {
        if held.len() != self.places.len() {
            return self.end(Ended::Confused);
        }
        if !answer.standing.is_full {
            return self.end(Ended::NotFull);
        }
        self.meet(answer);
        let is_held = |held: &KeyHeld| held.held().is_some_and(Held::includes);
        let lacked = take(&mut self.places).into_iter().zip(held).filter(|(_, held)| !is_held(held));
        let lacked = lacked.map(|(place, _)| place).collect();
        self.bring(lacked)
    }

    /// Takes what the other node stands for.
    fn meet(&mut self, answer: RootAnswer) {
        let standing = answer.standing;
        self.peer = PeerStore { store_id: standing.store_id, token: standing.token };
        let own = self.mark.map_or(0, |mark| marked_seq(&mark, standing));
        // Nothing above the cut takes part, so nothing above it was included as far as this
        // exchange is concerned.
        self.marked_seq = own.max(answer.known_seq).min(self.seq);
        self.highest_mark = self.highest_mark.max(self.marked_seq);
        if is_broken(BrokenRule::MarksDecideWhatIsPushed) {
            self.highest_mark = 0;
        }
    }

    fn on_groups(&mut self, theirs: &[u64]) -> Action {
        match self.sums.differing_groups(theirs) {
            None => self.end(Ended::Confused),
            // They have become equal since the first question.
            Some(0) => self.prove(),
            Some(groups) => {
                self.state = State::Ranges;
                // A node of an earlier version answers with the sums of all of them.
                self.asked = ranges_of(groups);
                if !outlines::are_worth_it(groups) {
                    return Action::AskRanges(groups);
                }
                self.outlined = groups;
                Action::AskOutlines(groups)
            }
        }
    }

    /// Takes the outlines of groups, at the first look. They say nothing of a group of which
    /// several ranges differ, so its sums are asked for.
    fn on_outlines(&mut self, theirs: &[u64]) -> Action {
        // One question has one answer.
        let asked = take(&mut self.outlined);
        let shown = outlines::compare(&self.sums, asked, theirs).filter(|_| asked != 0);
        let Some(Shown { ranges, groups }) = shown else { return self.end(Ended::Confused) };
        if groups == 0 {
            return self.on_differing(ranges);
        }
        (self.shown, self.asked) = (ranges, ranges_of(groups));
        Action::AskRanges(groups)
    }

    /// Takes the sums of ranges, at the first look or at the second one.
    fn on_ranges(&mut self, theirs: &[u64]) -> Action {
        let Some(mut differing) = self.sums.differing(&self.asked, theirs) else { return self.end(Ended::Confused) };
        differing.append(&mut self.shown);
        differing.sort_unstable();
        self.on_differing(differing)
    }

    /// Takes the ranges that differ, ascending.
    fn on_differing(&mut self, mut differing: Vec<u32>) -> Action {
        if differing.is_empty() {
            return self.prove();
        }
        self.has_left |= differing.len() > SOME_RANGES_MAX;
        differing.truncate(SOME_RANGES_MAX);
        self.asked = differing;
        if self.state == State::Again || is_broken(BrokenRule::DifferencesAreSeenTwice) {
            self.state = State::Listing;
            return Action::List(self.asked.clone());
        }
        // The pause is long, and the sums are large.
        self.sums = Sums::none();
        self.state = State::Paused;
        Action::Pause
    }

    fn on_resumed(&mut self, sums: Sums) -> Action {
        self.sums = sums;
        self.state = State::Again;
        Action::AskSome(self.asked.clone())
    }

    fn on_listed(&mut self, ranges: Vec<u32>, items: Vec<Item>) -> Action {
        self.has_left |= ranges.len() < self.asked.len();
        self.lists = lists::questions(&ranges, &items).into();
        self.items = items;
        self.state = State::Sending;
        self.send_list()
    }

    fn send_list(&mut self) -> Action {
        match self.lists.pop_front() {
            Some(list) => Action::SendList(list),
            None => {
                let places = take(&mut self.places);
                self.bring(places)
            }
        }
    }

    fn on_lacked(&mut self, mixes: &[u64]) -> Action {
        let is_lacked = |place: &usize| {
            let item = &self.items[*place];
            item.seq <= self.seq && mixes.binary_search(&item.mix).is_ok()
        };
        let lacked: Vec<usize> = (0..self.items.len()).filter(is_lacked).collect();
        self.places.extend(lacked);
        self.send_list()
    }

    /// Splits what the other node lacks: what is above all marks and not in doubt is pushed, and
    /// for the rest it is asked what the other node holds now.
    fn bring(&mut self, places: Vec<usize>) -> Action {
        let asks_first = |place: &usize| self.items[*place].seq <= self.highest_mark.max(self.doubt_to);
        (self.places, self.to_push) = places.into_iter().partition(asks_first);
        if self.places.is_empty() {
            return self.push();
        }
        self.state = State::Comparing;
        Action::Compare(self.places.clone(), self.peer)
    }

    fn on_held(&mut self, is_reliable: bool, marked_seq: u64, held: &[KeyHeld]) -> Action {
        if held.len() != self.places.len() {
            return self.end(Ended::Confused);
        }
        if !is_reliable {
            return self.end(Ended::NotFull);
        }
        // The other store may have lost since the first answer what the mark says of it.
        self.marked_seq = self.marked_seq.min(marked_seq);
        self.held_there.clear();
        for (place, held) in take(&mut self.places).into_iter().zip(held) {
            let is_in_doubt = self.items[place].seq <= self.doubt_to;
            match held.held() {
                Some(Held::Same | Held::Covers) => {}
                // An older version was not written after a removal.
                Some(Held::Less) if !is_in_doubt => self.to_push.push(place),
                // Of what one of the two cannot read the others know more.
                Some(Held::Less | Held::Nothing | Held::Other) | None => {
                    self.places.push(place);
                    self.held_there.push(*held);
                }
            }
        }
        if self.places.is_empty() {
            return self.push();
        }
        self.state = State::Witnesses;
        Action::AskWitnesses(self.places.clone())
    }

    fn on_witnessed(&mut self, witnesses: &[Witness]) -> Action {
        let asked = take(&mut self.places).into_iter().zip(take(&mut self.held_there));
        for (number, (place, held_there)) in asked.enumerate() {
            let (seq, marked_seq) = (self.items[place].seq, self.marked_seq);
            let lacked = Lacked { seq, marked_seq, is_in_doubt: seq <= self.doubt_to, held_there };
            match judge(number, lacked, witnesses) {
                Verdict::Push => self.to_push.push(place),
                Verdict::Drop => self.to_drop.push(place),
                Verdict::Withhold => {
                    self.tally.withheld += 1;
                    self.has_unproved = true;
                }
            }
        }
        self.push()
    }

    fn push(&mut self) -> Action {
        if self.to_push.is_empty() {
            return self.drop_removed();
        }
        self.state = State::Pushing;
        Action::Push(self.to_push.clone())
    }

    fn on_pushed(&mut self, proved: &[bool]) -> Action {
        if proved.len() != self.to_push.len() {
            return self.end(Ended::Confused);
        }
        self.tally.repaired += proved.iter().filter(|is_proved| **is_proved).count() as u64;
        self.has_unproved |= proved.contains(&false);
        self.drop_removed()
    }

    fn drop_removed(&mut self) -> Action {
        if self.to_drop.is_empty() {
            return self.prove();
        }
        self.state = State::Dropping;
        Action::Drop(self.to_drop.clone())
    }

    fn on_dropped(&mut self, dropped: &[bool]) -> Action {
        self.tally.dropped += dropped.iter().filter(|is_dropped| **is_dropped).count() as u64;
        // What is still here, or was written over, is compared again in the next exchange.
        self.has_unproved |= dropped.contains(&false);
        self.prove()
    }

    /// Everything of this exchange is done.
    fn prove(&mut self) -> Action {
        if self.has_unproved && !is_broken(BrokenRule::MarksNeedProof) {
            return self.end(Ended::Unproved);
        }
        if self.has_left {
            return self.end(Ended::Partly);
        }
        self.state = State::Marking;
        Action::Mark { seq: self.seq, token: self.peer.token }
    }

    fn on_marked(&mut self, peer_seq: u64) -> Action {
        if peer_seq == 0 { self.end(Ended::Unproved) } else { self.keep(peer_seq) }
    }

    fn keep(&mut self, peer_seq: u64) -> Action {
        self.state = State::Keeping;
        Action::Keep(Towards { own_store: self.own_store, seq: self.seq, peer: self.peer, peer_seq })
    }

    fn end(&mut self, ended: Ended) -> Action {
        self.state = State::Ended;
        Action::End(ended)
    }
}

/// Up to which seq of this node's store a mark covers, as the other node stands: nothing if it does
/// not hold.
pub(crate) fn marked_seq(mark: &Towards, standing: Standing) -> u64 {
    let is_named = mark.peer == PeerStore { store_id: standing.store_id, token: standing.token };
    let holds = standing.is_full && !standing.is_lost && is_named;
    if holds || is_broken(BrokenRule::MarksNameTokens) { mark.seq } else { 0 }
}
