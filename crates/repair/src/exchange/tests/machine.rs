//! The state machine, state by state.

use crate::exchange::lists::Item;
use crate::exchange::machine::{Action, Begin, Ended, Event, Exchange, Tally, marked_seq};
use crate::exchange::outlines::outlines;
use crate::exchange::sums::{Cut, GROUPS, Sums};
use crate::exchange::verdict::Witness;
use crate::exchange::{KeyHeld, ListQuestion, RootAnswer, SOME_RANGES_MAX, Standing};
use ombak_kv::repair_host::BrokenRule;
use ombak_kv::repair_host::{PeerStore, Towards};
use ombak_kv::replica::Held;

const PEER: PeerStore = PeerStore { store_id: 4, token: 5 };
const SEQ: u64 = 100;
/// Where the other node's store is.
const PEER_SEQ: u64 = 900;

/// A mark of this node.
const fn mark(peer: PeerStore, seq: u64) -> Towards {
    Towards { own_store: 1, seq, peer, peer_seq: 800 }
}

const fn kept() -> Towards {
    Towards { own_store: 1, seq: SEQ, peer: PEER, peer_seq: PEER_SEQ }
}

fn sums(versions: &[(u32, u64)]) -> Sums {
    let mut sums = Sums::default();
    versions.iter().for_each(|(range, mix)| sums.add(*range, *mix));
    sums
}

fn begin_with(own: &Sums, mark: Option<Towards>) -> Exchange {
    let (exchange, first) = Exchange::begin(Begin { mark, ..facts(own) });
    let marked_seq = mark.map_or(0, |mark| mark.peer_seq);
    assert_eq!(first, Action::AskRoot { seq: SEQ, sum: own.root(), marked_seq });
    exchange
}

fn facts(own: &Sums) -> Begin {
    let cut = Cut { seq: SEQ, through: SEQ, sums: own.clone() };
    Begin { is_full: true, cut, mark: None, highest_mark: 0, own_store: 1, doubt_to: 0, way_back: None }
}

const fn standing() -> Standing {
    Standing { is_full: true, is_lost: false, store_id: PEER.store_id, token: PEER.token, seq: PEER_SEQ }
}

fn root(is_same: bool, known_seq: u64) -> Event {
    Event::Root(RootAnswer { is_same, standing: standing(), known_seq })
}

fn held(held: Held) -> Event {
    Event::Held { is_reliable: true, marked_seq: SEQ, held: vec![KeyHeld::Readable(held)] }
}

/// Takes an exchange to the point where the other node has said what it lacks of these items, all
/// in one range.
fn to_lacked(exchange: &mut Exchange, known_seq: u64, items: &[Item]) -> Action {
    let theirs = Sums::default();
    let own = sums(&[(7, 1)]);
    assert_eq!(exchange.on(root(false, known_seq)), Action::AskGroups);
    assert_eq!(exchange.on(Event::Sums(theirs.groups())), Action::AskOutlines(1));
    assert_eq!(exchange.on(Event::Outlines(outlines(&theirs, 1))), Action::Pause);
    assert_eq!(exchange.on(Event::Resumed(own)), Action::AskSome(vec![7]));
    assert_eq!(exchange.on(Event::Sums(vec![0])), Action::List(vec![7]));
    let mut mixes: Vec<u64> = items.iter().map(|item| item.mix).collect();
    mixes.sort_unstable();
    let list = ListQuestion { ranges: vec![7], from: 0, to: u64::MAX, mixes: mixes.clone() };
    let listed = Event::Listed { ranges: vec![7], items: items.to_vec() };
    assert_eq!(exchange.on(listed), Action::SendList(list));
    exchange.on(Event::Lacked(mixes))
}

fn begin(mark: Option<Towards>) -> Exchange {
    begin_with(&sums(&[(7, 1)]), mark)
}

const fn item(mix: u64, seq: u64) -> Item {
    Item { mix, seq }
}

fn full(held: Held) -> Witness {
    Witness { is_full: true, marked_seq: 60, held: vec![KeyHeld::Readable(held)] }
}

#[test]
fn equal_replicas_take_one_question() {
    let mut exchange = begin(None);
    assert_eq!(exchange.on(root(true, SEQ)), Action::Keep(kept()));
    assert_eq!(exchange.on(Event::Kept), Action::End(Ended::Included));
    assert_eq!(exchange.tally(), Tally::default());
}

#[test]
fn nothing_begins_unless_both_are_full() {
    let (_, first) = Exchange::begin(Begin { is_full: false, ..facts(&Sums::default()) });
    assert_eq!(first, Action::End(Ended::NotFull));
    let answer = RootAnswer { is_same: false, standing: Standing::default(), known_seq: 0 };
    assert_eq!(begin(None).on(Event::Root(answer)), Action::End(Ended::NotFull));
}

#[test]
fn a_difference_that_is_gone_at_the_second_look_is_none() {
    let own = sums(&[(7, 1)]);
    let mut exchange = begin_with(&own, None);
    assert_eq!(exchange.on(root(false, 0)), Action::AskGroups);
    assert_eq!(exchange.on(Event::Sums(Sums::default().groups())), Action::AskOutlines(1));
    assert_eq!(exchange.on(Event::Sums(Sums::default().of_groups(1))), Action::Pause);
    assert_eq!(exchange.on(Event::Resumed(own)), Action::AskSome(vec![7]));
    assert_eq!(exchange.on(Event::Sums(vec![1])), Action::Mark { seq: SEQ, token: PEER.token });
    assert_eq!(exchange.on(Event::Marked(PEER_SEQ)), Action::Keep(kept()));
    assert_eq!(exchange.on(Event::Kept), Action::End(Ended::Included));
}

#[test]
fn a_version_that_the_other_node_never_had_is_pushed() {
    let mut exchange = begin(None);
    assert_eq!(to_lacked(&mut exchange, 0, &[item(9, 50)]), Action::Push(vec![0]));
    assert_eq!(exchange.on(Event::Pushed(vec![true])), Action::Mark { seq: SEQ, token: PEER.token });
    assert_eq!(exchange.tally(), Tally { repaired: 1, ..Tally::default() });
}

#[test]
fn a_version_that_is_newer_than_the_first_look_takes_no_part() {
    let mut exchange = begin(None);
    let action = to_lacked(&mut exchange, 0, &[item(9, SEQ + 1), item(8, SEQ)]);
    assert_eq!(action, Action::Push(vec![1]), "it may be on its way");
}

#[test]
fn a_mark_waits_for_everything() {
    let mut exchange = begin(None);
    to_lacked(&mut exchange, 0, &[item(8, 1), item(9, 2)]);
    assert_eq!(exchange.on(Event::Pushed(vec![true, false])), Action::End(Ended::Unproved));
    let mut exchange = begin(None);
    to_lacked(&mut exchange, 0, &[item(8, 1)]);
    exchange.on(Event::Pushed(vec![true]));
    assert_eq!(exchange.on(Event::Marked(0)), Action::End(Ended::Unproved), "the other class is filling");
}

/// The item is at or below the mark, and the other node holds nothing of it.
fn suspect(witnesses: Vec<Witness>) -> (Action, Exchange) {
    let mut exchange = begin(Some(mark(PEER, 60)));
    assert_eq!(to_lacked(&mut exchange, 0, &[item(9, 60)]), Action::Compare(vec![0], PEER));
    assert_eq!(exchange.on(held(Held::Nothing)), Action::AskWitnesses(vec![0]));
    (exchange.on(Event::Witnessed(witnesses)), exchange)
}

#[test]
fn a_version_that_was_removed_everywhere_else_is_dropped() {
    let (action, mut exchange) = suspect(vec![full(Held::Nothing)]);
    assert_eq!(action, Action::Drop(vec![0]));
    assert_eq!(exchange.on(Event::Dropped(vec![true])), Action::Mark { seq: SEQ, token: PEER.token });
    assert_eq!(exchange.tally(), Tally { dropped: 1, ..Tally::default() });
}

#[test]
fn a_version_that_another_full_primary_holds_is_pushed() {
    assert_eq!(suspect(vec![full(Held::Less)]).0, Action::Push(vec![0]));
}

#[test]
fn a_version_of_which_nobody_can_tell_stays_and_so_does_the_mark() {
    for witnesses in [vec![Witness::silent()], vec![full(Held::Same), Witness::silent()]] {
        let (action, exchange) = suspect(witnesses);
        assert_eq!(action, Action::End(Ended::Unproved));
        assert_eq!(exchange.tally(), Tally { withheld: 1, ..Tally::default() });
    }
}

#[test]
fn of_two_primaries_the_one_that_has_the_version_drops_it() {
    assert_eq!(suspect(vec![]).0, Action::Drop(vec![0]));
}

#[test]
fn a_version_that_one_mark_does_not_cover_is_pushed() {
    let unmarked = Witness { marked_seq: 59, ..full(Held::Nothing) };
    assert_eq!(suspect(vec![unmarked]).0, Action::Push(vec![0]), "that primary may never have had it");
}

#[test]
fn a_mark_for_another_primary_is_a_reason_to_ask() {
    let own = sums(&[(7, 1)]);
    let (mut exchange, _) = Exchange::begin(Begin { highest_mark: 60, ..facts(&own) });
    assert_eq!(to_lacked(&mut exchange, 0, &[item(9, 60), item(10, 61)]), Action::Compare(vec![0], PEER));
    assert_eq!(exchange.on(held(Held::Nothing)), Action::AskWitnesses(vec![0]));
    assert_eq!(exchange.on(Event::Witnessed(vec![full(Held::Nothing)])), Action::Push(vec![1, 0]));
}

#[test]
fn what_is_older_at_the_other_node_is_pushed_whatever_the_mark_says() {
    for less in [KeyHeld::Readable(Held::Less), KeyHeld::InDoubt(Held::Less)] {
        let mut exchange = begin(Some(mark(PEER, 60)));
        to_lacked(&mut exchange, 0, &[item(9, 60)]);
        let held = Event::Held { is_reliable: true, marked_seq: 60, held: vec![less] };
        assert_eq!(exchange.on(held), Action::Push(vec![0]));
    }
    let mut exchange = begin(Some(mark(PEER, 60)));
    to_lacked(&mut exchange, 0, &[item(9, 60)]);
    assert_eq!(exchange.on(held(Held::Other)), Action::AskWitnesses(vec![0]), "it may be of after a removal");
    for same in [Held::Same, Held::Covers] {
        let mut exchange = begin(Some(mark(PEER, 60)));
        to_lacked(&mut exchange, 0, &[item(9, 60)]);
        let action = exchange.on(held(same));
        assert_eq!(action, Action::Mark { seq: SEQ, token: PEER.token });
    }
}

/// The rules of a lack hold for what is there and is no evidence, too.
#[test]
fn the_others_are_asked_for_what_one_cannot_read_and_for_what_is_in_doubt() {
    let own = sums(&[(7, 1)]);
    for (doubt_to, there) in [(0, KeyHeld::Unreadable), (60, KeyHeld::Unreadable), (60, KeyHeld::Readable(Held::Less))]
    {
        let facts = Begin { mark: Some(mark(PEER, 60)), highest_mark: 60, doubt_to, ..facts(&own) };
        let (mut exchange, _) = Exchange::begin(facts);
        to_lacked(&mut exchange, 0, &[item(9, 60)]);
        let held = Event::Held { is_reliable: true, marked_seq: 60, held: vec![there] };
        assert_eq!(exchange.on(held), Action::AskWitnesses(vec![0]), "{doubt_to} {there:?}");
        assert_eq!(exchange.on(Event::Witnessed(vec![Witness::silent()])), Action::End(Ended::Unproved));
    }
}

/// The other node has lost its tail during the exchange, and was filled again with the same token.
#[test]
fn a_mark_that_does_not_hold_any_more_when_keys_are_compared_covers_nothing() {
    let mut exchange = begin(Some(mark(PEER, 60)));
    to_lacked(&mut exchange, 0, &[item(9, 60)]);
    let held = Event::Held { is_reliable: true, marked_seq: 0, held: vec![KeyHeld::Readable(Held::Nothing)] };
    assert_eq!(exchange.on(held), Action::AskWitnesses(vec![0]));
    assert_eq!(exchange.on(Event::Witnessed(vec![])), Action::Push(vec![0]));
}

#[test]
fn the_higher_mark_of_both_nodes_counts() {
    for (own, known) in [(60, 0), (0, 60), (20, 60), (60, 20)] {
        let mut exchange = begin(Some(mark(PEER, own)));
        let action = to_lacked(&mut exchange, known, &[item(9, 60)]);
        assert_eq!(action, Action::Compare(vec![0], PEER), "{own} and {known}");
    }
}

#[test]
fn a_mark_of_another_store_or_another_filling_covers_nothing() {
    for peer in [PeerStore { store_id: 1, ..PEER }, PeerStore { token: 1, ..PEER }] {
        assert_eq!(marked_seq(&mark(peer, 60), standing()), 0);
    }
    assert_eq!(marked_seq(&mark(PEER, 60), standing()), 60);
    assert_eq!(marked_seq(&mark(PEER, 60), Standing { is_full: false, ..standing() }), 0);
}

#[test]
fn a_mark_of_which_the_other_store_has_lost_the_seq_covers_nothing() {
    let own = sums(&[(7, 1)]);
    let facts = Begin { mark: Some(mark(PEER, 60)), highest_mark: 60, ..facts(&own) };
    let (mut exchange, _) = Exchange::begin(facts);
    let standing = Standing { is_lost: true, ..standing() };
    exchange.on(Event::Root(RootAnswer { is_same: false, standing, known_seq: 0 }));
    exchange.on(Event::Sums(Sums::default().groups()));
    exchange.on(Event::Sums(Sums::default().of_groups(1)));
    exchange.on(Event::Resumed(own));
    exchange.on(Event::Sums(vec![0]));
    exchange.on(Event::Listed { ranges: vec![7], items: vec![item(9, 60)] });
    assert_eq!(exchange.on(Event::Lacked(vec![9])), Action::Compare(vec![0], PEER));
    exchange.on(held(Held::Nothing));
    let action = exchange.on(Event::Witnessed(vec![full(Held::Nothing)]));
    assert_eq!(action, Action::Push(vec![0]), "the other node was set back, and lacks what it had");
}

#[test]
fn a_node_that_is_not_full_any_more_ends_the_exchange() {
    let mut exchange = begin(Some(mark(PEER, 60)));
    to_lacked(&mut exchange, 0, &[item(9, 60)]);
    let held = Event::Held { is_reliable: false, marked_seq: 60, held: vec![KeyHeld::Readable(Held::Nothing)] };
    assert_eq!(exchange.on(held), Action::End(Ended::NotFull));
}

#[test]
fn a_way_back_needs_no_lists_and_advances_no_mark() {
    let way_back = Some(vec![item(9, 50), item(10, 70)]);
    let begin = Begin { mark: Some(mark(PEER, 60)), highest_mark: 60, way_back, ..facts(&sums(&[(7, 1)])) };
    let (mut exchange, _) = Exchange::begin(begin);
    assert_eq!(exchange.on(root(false, 0)), Action::Compare(vec![0], PEER));
    assert_eq!(exchange.on(held(Held::Nothing)), Action::AskWitnesses(vec![0]));
    assert_eq!(exchange.on(Event::Witnessed(vec![full(Held::Same)])), Action::Push(vec![1, 0]));
    assert_eq!(exchange.on(Event::Pushed(vec![true, true])), Action::End(Ended::Partly));
}

#[test]
fn too_many_ranges_are_left_for_the_next_exchange() {
    let versions: Vec<(u32, u64)> = (0..3_000).map(|range| (range, 1)).collect();
    let mut exchange = begin_with(&sums(&versions), None);
    exchange.on(root(false, 0));
    let Action::AskRanges(groups) = exchange.on(Event::Sums(Sums::default().groups())) else { panic!("groups differ") };
    assert_eq!(exchange.on(Event::Sums(Sums::default().of_groups(groups))), Action::Pause);
    let Action::AskSome(ranges) = exchange.on(Event::Resumed(sums(&versions))) else { panic!("it looks again") };
    assert_eq!(ranges.len(), SOME_RANGES_MAX);
    assert_eq!(exchange.on(Event::Sums(vec![0; ranges.len()])), Action::List(ranges));
    // The keys of two ranges are enough for one exchange.
    let listed = Event::Listed { ranges: vec![0, 1], items: vec![item(1, 1), item(2, 2)] };
    let Action::SendList(list) = exchange.on(listed) else { panic!("it sends what it has") };
    assert_eq!(list.ranges, [0, 1]);
    assert_eq!(exchange.on(Event::Lacked(vec![1, 2])), Action::Push(vec![0, 1]));
    assert_eq!(exchange.on(Event::Pushed(vec![true, true])), Action::End(Ended::Partly), "the mark stays");
}

#[test]
fn an_answer_to_another_question_ends_the_exchange() {
    let events = [
        Event::Sums(Vec::new()),
        Event::Outlines(Vec::new()),
        Event::Resumed(Sums::default()),
        Event::Lacked(Vec::new()),
        Event::Held { is_reliable: true, marked_seq: 0, held: Vec::new() },
        Event::Witnessed(Vec::new()),
        Event::Pushed(Vec::new()),
        Event::Dropped(Vec::new()),
        Event::Marked(PEER_SEQ),
        Event::Kept,
        Event::Listed { ranges: Vec::new(), items: Vec::new() },
    ];
    for event in events {
        assert_eq!(begin(None).on(event.clone()), Action::End(Ended::Confused), "{event:?}");
    }
    let mut exchange = begin(None);
    exchange.on(root(false, 0));
    assert_eq!(exchange.on(Event::Sums(vec![0; GROUPS + 1])), Action::End(Ended::Confused), "too many groups");
}

#[test]
fn the_sums_of_a_group_are_asked_for_if_several_of_its_ranges_differ() {
    let own = sums(&[(3, 1), (9, 2), (70, 3), (130, 4)]);
    let theirs = sums(&[(130, 4)]);
    let mut exchange = begin_with(&own, None);
    exchange.on(root(false, 0));
    let groups = 1 | 1 << 1;
    assert_eq!(exchange.on(Event::Sums(theirs.groups())), Action::AskOutlines(groups));
    assert_eq!(exchange.on(Event::Outlines(outlines(&theirs, groups))), Action::AskRanges(1));
    assert_eq!(exchange.on(Event::Sums(theirs.of_groups(1))), Action::Pause);
    assert_eq!(exchange.on(Event::Resumed(own)), Action::AskSome(vec![3, 9, 70]));
}

#[test]
fn a_node_of_an_earlier_version_answers_with_sums_in_place_of_outlines() {
    let own = sums(&[(3, 1), (9, 2), (70, 3)]);
    let theirs = Sums::default();
    let mut exchange = begin_with(&own, None);
    exchange.on(root(false, 0));
    assert_eq!(exchange.on(Event::Sums(theirs.groups())), Action::AskOutlines(3));
    assert_eq!(exchange.on(Event::Sums(theirs.of_groups(3))), Action::Pause);
    assert_eq!(exchange.on(Event::Resumed(own)), Action::AskSome(vec![3, 9, 70]));
}

#[test]
fn outlines_that_answer_no_question_end_the_exchange() {
    let own = sums(&[(3, 1), (9, 2)]);
    let theirs = Sums::default();
    for further in [Vec::new(), outlines(&theirs, 1)] {
        let mut exchange = begin_with(&own, None);
        exchange.on(root(false, 0));
        exchange.on(Event::Sums(theirs.groups()));
        assert_eq!(exchange.on(Event::Outlines(outlines(&theirs, 1))), Action::AskRanges(1));
        assert_eq!(exchange.on(Event::Outlines(further)), Action::End(Ended::Confused));
    }
    let mut exchange = begin_with(&own, None);
    exchange.on(root(false, 0));
    exchange.on(Event::Sums(theirs.groups()));
    assert_eq!(exchange.on(Event::Outlines(outlines(&theirs, 3))), Action::End(Ended::Confused), "too many of them");
}

#[test]
fn with_one_look_a_write_in_flight_counts_as_a_difference() {
    let _broken = super::model::Broken::rule(BrokenRule::DifferencesAreSeenTwice);
    let mut exchange = begin(None);
    exchange.on(root(false, 0));
    exchange.on(Event::Sums(Sums::default().groups()));
    assert_eq!(exchange.on(Event::Sums(Sums::default().of_groups(1))), Action::List(vec![7]));
}
