//! Answers of replicas that know a newer placement than their sender.

use super::*;
use crate::wire::{
    encode_promise_reply_without_placement, encode_read_reply_without_placement, encode_store_reply_without_placement,
};

const KNOWN: RingVersion = RingVersion { lineage: 5, number: 300 };
const COUNTER: NodeCounter = NodeCounter { boot: 7, counter: 9 };

fn store_reply_of(outcome: StoreOutcome) -> StoreReply {
    StoreReply { outcome, counter: COUNTER }
}

#[test]
fn outdated_answers_have_these_bytes() {
    let held = store_reply_of(StoreOutcome::Outdated { known: KNOWN, digest: Some(300) });
    let fields = [1, 3, 5, 0xac, 2, 2, 2, 0xac, 2, 0];
    assert_eq!(bytes_of(&encode_store_reply(&held))[..], [&[1, 3, 7, 9][..], &fields].concat());
    let nothing = store_reply_of(StoreOutcome::Outdated { known: KNOWN, digest: None });
    assert_eq!(bytes_of(&encode_store_reply(&nothing))[..], [1, 3, 7, 9, 1, 3, 5, 0xac, 2, 0]);
    let read =
        ReadReply { version: None, full: false, outdated: Some(KNOWN), left_to_exchanges: false, counter: COUNTER };
    assert_eq!(bytes_of(&encode_read_reply(&read))[..], [1, 0, 7, 9, 1, 3, 5, 0xac, 2, 0]);
    let promise = PromiseReply { version: None, full: false, outdated: Some(KNOWN), outbid: None, counter: COUNTER };
    assert_eq!(bytes_of(&encode_promise_reply(&promise))[..], [1, 0, 7, 9, 2, 3, 5, 0xac, 2, 0]);
}

#[test]
fn an_outcome_with_the_fields_of_another_is_malformed() {
    for bytes in [&[1, 3, 7, 9, 0][..], &[1, 1, 7, 9, 1, 3, 5, 0xac, 2, 0], &[1, 1, 7, 9, 2, 2, 0xac, 2, 0]] {
        assert!(decode_store_reply(&Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
    }
}

/// They count a write like before, and a not-found does not prove anything to them either.
#[test]
fn nodes_without_placements_are_told_nothing_of_them() {
    let digest = 300;
    for (outcome, told) in [
        (StoreOutcome::Outdated { known: KNOWN, digest: Some(digest) }, StoreOutcome::Stored { digest }),
        (StoreOutcome::Outdated { known: KNOWN, digest: None }, StoreOutcome::Conflict),
        (StoreOutcome::Fenced, StoreOutcome::Fenced),
    ] {
        let bytes = bytes_of(&encode_store_reply_without_placement(&store_reply_of(outcome)));
        assert_eq!(decode_store_reply(&bytes).unwrap(), store_reply_of(told));
    }
    let read =
        ReadReply { version: None, full: false, outdated: Some(KNOWN), left_to_exchanges: false, counter: COUNTER };
    let told = decode_read_reply(&bytes_of(&encode_read_reply_without_placement(&read))).unwrap();
    assert_eq!(told, ReadReply { outdated: None, ..read });
    let promise = PromiseReply { version: None, full: false, outdated: Some(KNOWN), outbid: None, counter: COUNTER };
    let told = decode_promise_reply(&bytes_of(&encode_promise_reply_without_placement(&promise))).unwrap();
    assert_eq!(told, PromiseReply { outdated: None, ..promise });
}
