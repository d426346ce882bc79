//! Exchanges of some keys alone, which reads have left to them.

use crate::exchange::lists::Item;
use crate::exchange::machine::{Action, Begin, Ended, Event, Exchange};
use crate::exchange::sums::{Cut, Sums};
use crate::exchange::verdict::Witness;
use crate::exchange::{KeyHeld, RootAnswer, Standing};
use ombak_kv::repair_host::{PeerStore, Towards};
use ombak_kv::replica::Held;

const PEER: PeerStore = PeerStore { store_id: 4, token: 5 };
const MARKED_SEQ: u64 = 60;

fn begin(items: &[Item]) -> Exchange {
    let cut = Cut { seq: u64::MAX, through: 0, sums: Sums::default() };
    let mark = Some(Towards { own_store: 1, seq: MARKED_SEQ, peer: PEER, peer_seq: 9 });
    let (highest_mark, way_back) = (MARKED_SEQ, Some(items.to_vec()));
    let begin = Begin { is_full: true, cut, mark, highest_mark, own_store: 1, doubt_to: 0, way_back };
    let (exchange, first) = Exchange::begin_with_keys(begin);
    assert_eq!(first, Action::Meet((0..items.len()).collect()));
    exchange
}

fn item(seq: u64) -> Item {
    Item { mix: seq, seq }
}

fn met(is_full: bool, held: &[Held]) -> Event {
    let standing = Standing { is_full, store_id: PEER.store_id, token: PEER.token, seq: 20, ..Standing::default() };
    let held = held.iter().map(|held| KeyHeld::Readable(*held)).collect();
    Event::Met { answer: RootAnswer { is_same: false, standing, known_seq: 0 }, held }
}

fn compared(held: &[Held]) -> Event {
    Event::Held {
        is_reliable: true,
        marked_seq: MARKED_SEQ,
        held: held.iter().map(|held| KeyHeld::Readable(*held)).collect(),
    }
}

#[test]
fn what_is_above_the_marks_is_pushed_and_the_rest_is_judged() {
    let mut exchange = begin(&[item(50), item(70), item(51), item(52)]);
    let first = [Held::Nothing, Held::Nothing, Held::Same, Held::Other];
    assert_eq!(exchange.on(met(true, &first)), Action::Compare(vec![0, 3], PEER));
    assert_eq!(exchange.on(compared(&[Held::Nothing, Held::Covers])), Action::AskWitnesses(vec![0]));
    let witness = Witness { is_full: true, marked_seq: MARKED_SEQ, held: vec![KeyHeld::Readable(Held::Nothing)] };
    assert_eq!(exchange.on(Event::Witnessed(vec![witness])), Action::Push(vec![1]));
    assert_eq!(exchange.on(Event::Pushed(vec![true])), Action::Drop(vec![0]));
    assert_eq!(exchange.on(Event::Dropped(vec![true])), Action::End(Ended::Partly), "no mark advances");
}

#[test]
fn keys_that_the_other_node_holds_need_nothing() {
    let mut exchange = begin(&[item(50), item(70)]);
    assert_eq!(exchange.on(met(true, &[Held::Same, Held::Covers])), Action::End(Ended::Partly));
}

#[test]
fn nothing_is_brought_to_a_node_that_is_not_full() {
    let mut exchange = begin(&[item(70)]);
    assert_eq!(exchange.on(met(false, &[Held::Nothing])), Action::End(Ended::NotFull));
    let mut exchange = begin(&[item(70)]);
    assert_eq!(exchange.on(met(true, &[])), Action::End(Ended::Confused), "it is no answer to the question");
}
