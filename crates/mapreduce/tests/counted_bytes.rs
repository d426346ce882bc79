//! Decoders never allocate more than they count.
#![allow(clippy::unwrap_used)]

mod counting;

use counting::{Counting, check_all};
use ombak_types::etf::{Term, encode};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Texts that take many times their length once they are read.
const PIECES: [&str; 14] = [
    "[]",
    "{}",
    "0",
    "\"\"",
    "[[]]",
    "{\"\":0}",
    "[\"b\",\"k\"]",
    "[\"b\",\"k\",[[],1e9]]",
    "12345678901234567890",
    "\"\\u00e9\\n\"",
    "1.5",
    "null",
    "[\"a\",\"b\",{\"c\":[]},\"t\"]",
    "[\"not\",[[\"eq\",\"a\"]]]",
];

/// Where many values are in a job.
const FRAMES: [&str; 6] = [
    "[@]",
    "{\"inputs\":[@],\"query\":[]}",
    "{\"inputs\":[[\"b\",\"k\",[@]]],\"query\":[]}",
    "{\"inputs\":{\"bucket\":\"b\",\"key_filters\":[@]},\"query\":[]}",
    "{\"inputs\":\"b\",\"query\":[{\"map\":{\"language\":\"javascript\",\"name\":\"x\",\"arg\":[@]}}]}",
    "{\"inputs\":{\"module\":\"m\",\"function\":\"f\",\"arg\":[@]},\"query\":[@]}",
];

#[test]
fn worst_shapes_in_json_take_no_more_than_was_counted() {
    for frame in FRAMES {
        for piece in PIECES {
            let list = [piece].repeat(20_000).join(",");
            check_all(frame.replace('@', &list).as_bytes());
        }
        check_all(frame.replace('@', &format!("\"{}\"", "x".repeat(200_000))).as_bytes());
    }
}

#[test]
fn worst_shapes_in_terms_take_no_more_than_was_counted() {
    let pair = |name: &str, value: Term| Term::pair(Term::atom(name), value);
    let key = Term::pair(Term::binary(b"b"), Term::binary(b"k"));
    let items = [
        Term::nil(),
        Term::atom("a"),
        Term::Tuple(Vec::new()),
        Term::Map(Vec::new()),
        Term::binary(b""),
        Term::binary(b"a"),
        Term::binary(&[7; 1_000]),
        Term::ImproperList(vec![Term::Int(1)], Box::new(Term::Int(2))),
        Term::pair(key.clone(), Term::List(vec![Term::nil()])),
        key,
    ];
    for item in items {
        let list = Term::List(vec![item; 20_000]);
        check_all(&encode(&list));
        check_all(&encode(&Term::List(vec![pair("inputs", list.clone()), pair("query", Term::nil())])));
        check_all(&encode(&Term::List(vec![pair("inputs", Term::binary(b"b")), pair("query", list)])));
    }
}

proptest! {
    #[test]
    fn no_text_takes_more_than_was_counted(
        frame in 0..FRAMES.len(),
        pieces in prop::collection::vec((0..PIECES.len(), 1_usize..200), 0..20),
        cut in prop::option::of(0_usize..2_000),
    ) {
        let list: Vec<&str> = pieces.iter().flat_map(|(piece, count)| [PIECES[*piece]].repeat(*count)).collect();
        let mut text = FRAMES[frame].replace('@', &list.join(","));
        if let Some(cut) = cut && text.is_char_boundary(cut) {
            text.truncate(cut);
        }
        check_all(text.as_bytes());
    }

    #[test]
    fn no_bytes_take_more_than_was_counted(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_all(&bytes);
        bytes.insert(0, 131);
        check_all(&bytes);
    }
}
