//! When a cursor is still of use.

use super::*;
use crate::identity::StoreIdentity;

const CURSOR: StorePlace = StorePlace { store_id: 7, run: 3, seq: 50, lost_ranges: 1, removals: 0 };

fn test(run: u64, lost_writes_boot: Option<u64>, opened_seq: u64, cursor: StorePlace) -> Result<(), CursorLost> {
    let identity = StoreIdentity { store_id: 7, boot: run, lost_writes_boot, ..StoreIdentity::default() };
    let now = PlaceNow { identity, lost_ranges: 1, opened_seq, last_seq: 90 };
    now.test(&FeedCursor::of_store(cursor)).map(|_| ())
}

#[test]
fn a_cursor_is_of_use_in_its_store_as_long_as_nothing_is_missing() {
    assert_eq!(test(3, None, 10, CURSOR), Ok(()));
    assert_eq!(test(5, None, 50, CURSOR), Ok(()), "later runs have all that it has seen");
    assert_eq!(test(3, None, 10, StorePlace { store_id: 8, ..CURSOR }), Err(CursorLost::OtherStore));
    assert_eq!(test(3, None, 10, StorePlace { lost_ranges: 0, ..CURSOR }), Err(CursorLost::Damaged));
    assert_eq!(test(1, None, 0, StorePlace { store_id: 0, run: 1, seq: 0, ..CURSOR }), Ok(()), "it was empty then");
    let of_none = FeedCursor { seq: 50, stores: Vec::new() };
    let now = PlaceNow { identity: StoreIdentity::default(), lost_ranges: 0, opened_seq: 0, last_seq: 90 };
    assert_eq!(now.test(&of_none).unwrap_err(), CursorLost::OtherStore);
}

#[test]
fn a_lost_tail_is_noticed_also_when_later_appends_have_higher_numbers() {
    assert_eq!(test(4, None, 49, CURSOR), Err(CursorLost::LostTail));
    assert_eq!(test(3, None, 10, StorePlace { seq: 91, ..CURSOR }), Err(CursorLost::LostTail));
    assert_eq!(test(2, None, 80, CURSOR), Err(CursorLost::LostTail), "the store was set back");
    // The start of run 4 found writes missing, and nobody knows how many.
    assert_eq!(test(5, Some(4), 80, CURSOR), Err(CursorLost::LostTail));
    assert_eq!(test(5, Some(5), 80, CURSOR), Err(CursorLost::LostTail), "run 4 may have lost writes, too");
    assert_eq!(test(4, Some(4), 80, CURSOR), Ok(()), "this start has all up to 80");
    assert_eq!(test(5, Some(3), 80, CURSOR), Ok(()), "the cursor was made after that loss");
}

#[test]
fn origins_keep_their_numbers() {
    let all = [Origin::Unknown, Origin::Coordinated, Origin::Replica, Origin::Repair, Origin::Handoff, Origin::Reap];
    assert_eq!(all.map(Origin::number), [0, 1, 2, 3, 4, 5]);
    for number in 0..16 {
        let origin = Origin::of_number(number);
        assert!(origin.number() == number || origin == Origin::Unknown);
    }
}
