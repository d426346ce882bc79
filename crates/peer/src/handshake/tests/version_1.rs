//! The handshakes of version 1, as nodes of that version hold them.

use super::*;
use crate::handshake::message::{GREETING_BYTES, HEADER_BYTES};
use ombak_fixtures::FrozenMessages;
use std::collections::BTreeSet;

/// All that two sides of version 1 say to each other.
fn spoken(refuse: Option<RefusalKind>) -> (Side, Side) {
    let left = initiator(local(1)).with_versions(1, 1);
    let mut right = Side::new(responder(local(2)).with_versions(1, 1));
    right.refuse = refuse.map(|kind| Refusal::new(kind, "no é"));
    run_sides(Side::new(left), right, 1000)
}

/// What a side makes of frozen bytes of the other one. They hold only if it says what it said then,
/// so `now_us` is the time of its hello.
fn heard(mut side: Side, bytes: &[u8], now_us: i64) -> Outcome {
    side.send();
    side.receive(bytes, now_us);
    side.send();
    side.outcome
}

#[test]
fn handshakes_have_the_bytes_of_version_1() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 1, "handshakes");
    let (left, right) = spoken(None);
    let initiator = || Side::new(initiator(local(1)).with_versions(1, 1));
    let responder = || Side::new(responder(local(2)).with_versions(1, 1));
    frozen.check(
        "initiator",
        &established(&right).peer,
        |_| left.sent.clone(),
        |bytes| heard(responder(), bytes, 1030).map(|established| established.unwrap().peer),
    );
    frozen.check(
        "responder",
        &established(&left).peer,
        |_| right.sent.clone(),
        |bytes| heard(initiator(), bytes, 40).map(|established| established.unwrap().peer),
    );
    for (name, kind) in refusals() {
        let (left, right) = spoken(Some(kind));
        let refusal = failure(&left).clone();
        let decode = |bytes: &[u8]| heard(initiator(), bytes, 40).map_or_else(Ok, |_| Err("it was not refused"));
        frozen.check(&format!("responder/refuses/{name}"), &refusal, |_| right.sent.clone(), decode);
    }
    frozen.end();
}

const fn refusals() -> [(&'static str, RefusalKind); 7] {
    [
        ("other_cluster", RefusalKind::OtherCluster),
        ("wrong_node", RefusalKind::WrongNode),
        ("same_node", RefusalKind::SameNode),
        ("node_id_in_use", RefusalKind::NodeIdInUse),
        ("not_admitted", RefusalKind::NotAdmitted),
        ("older_directory", RefusalKind::OlderDirectory),
        ("other", RefusalKind::Other(0x0304)),
    ]
}

#[test]
fn each_kind_of_messages_is_frozen() {
    let mut kinds = BTreeSet::new();
    let conversations = [spoken(None), spoken(Some(RefusalKind::NotAdmitted))];
    for side in conversations.iter().flat_map(|(left, right)| [left, right]) {
        let mut rest = &side.sent[GREETING_BYTES..];
        while let [low, high, kind, ..] = rest {
            kinds.insert(*kind);
            rest = &rest[HEADER_BYTES + usize::from(u16::from_le_bytes([*low, *high]))..];
        }
    }
    // Version 1 has no first words.
    let is_of_version_1 = |code: &u8| Kind::from_code(*code).is_some_and(|kind| !matches!(kind, Kind::Words));
    assert_eq!(kinds, (0..=255).filter(is_of_version_1).collect());
    let known = (0..1000).filter(|code| !matches!(RefusalKind::from_code(*code), RefusalKind::Other(_)));
    let frozen: BTreeSet<u16> = refusals().iter().map(|(_, kind)| kind.code()).collect();
    assert_eq!(frozen, known.chain([0x0304]).collect());
}
