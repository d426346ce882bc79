mod version_1;
mod words;

use super::message::{Hello, Kind};
use super::*;
use crate::identity::{Lane, NodeIdentity};
use bytes::BytesMut;
use ombak_types::NodeId;
use proptest::prelude::*;

const SECRET: &[u8] = b"the secret of a test cluster";

fn identity(node: u64) -> NodeIdentity {
    NodeIdentity {
        cluster: 7,
        node: NodeId::new(node),
        boot_number: 3,
        session: node * 100,
        capabilities: ["hints".to_owned(), format!("only-{node}")].into(),
    }
}

fn local(node: u64) -> LocalPeer {
    LocalPeer { identity: identity(node), secret: Secret::new(SECRET).unwrap() }
}

fn initiator(local: LocalPeer) -> Handshake {
    Handshake::initiator(local, Some(NodeId::new(2)), Lane::Bulk, [1; 32])
}

fn responder(local: LocalPeer) -> Handshake {
    Handshake::responder(local, [2; 32])
}

type Outcome = Result<Option<Established>, HandshakeError>;

/// A side of a handshake with what has arrived and how it ended.
struct Side {
    handshake: Handshake,
    arrived: BytesMut,
    outcome: Outcome,
    sent: Vec<u8>,
    refuse: Option<Refusal>,
}

impl Side {
    fn new(handshake: Handshake) -> Self {
        Self { handshake, arrived: BytesMut::new(), outcome: Ok(None), sent: Vec::new(), refuse: None }
    }

    fn receive(&mut self, bytes: &[u8], now_us: i64) {
        self.arrived.extend_from_slice(bytes);
        if self.outcome == Ok(None) {
            let refuse = self.refuse.clone();
            self.outcome =
                self.handshake.receive(&mut self.arrived, now_us, &mut |_| refuse.clone().map_or(Ok(()), Err));
        }
    }

    fn send(&mut self) -> Vec<u8> {
        let bytes = self.handshake.take_output();
        self.sent.extend_from_slice(&bytes);
        bytes
    }
}

/// Runs a handshake over a perfect network that takes 10 µs each way and cuts everything into
/// pieces of `step` bytes. The responder's clock is 1,000 µs ahead.
fn run(left: Handshake, right: Handshake, step: usize) -> (Side, Side) {
    run_sides(Side::new(left), Side::new(right), step)
}

fn run_sides(mut left: Side, mut right: Side, step: usize) -> (Side, Side) {
    let mut now_us = 0;
    for _ in 0..4 {
        let bytes = left.send();
        now_us += 10;
        bytes.chunks(step).for_each(|piece| right.receive(piece, now_us + 1000));
        let bytes = right.send();
        now_us += 10;
        bytes.chunks(step).for_each(|piece| left.receive(piece, now_us));
    }
    (left, right)
}

fn established(side: &Side) -> &Established {
    side.outcome.as_ref().unwrap().as_ref().unwrap()
}

fn failure(side: &Side) -> &HandshakeError {
    side.outcome.as_ref().unwrap_err()
}

fn refusal_kind(side: &Side) -> RefusalKind {
    match failure(side) {
        HandshakeError::Refuses { refusal, .. } | HandshakeError::RefusedByPeer(refusal) => refusal.kind,
        other => panic!("no refusal: {other:?}"),
    }
}

#[test]
fn both_sides_learn_who_the_other_is() {
    for step in [1, 7, 1000] {
        let (left, right) = run(initiator(local(1)), responder(local(2)), step);
        assert_eq!(established(&left).peer, RemotePeer { identity: identity(2), channel: Lane::Bulk.into() });
        assert_eq!(established(&right).peer, RemotePeer { identity: identity(1), channel: Lane::Bulk.into() });
        assert_eq!(established(&left).version, 1);
        assert!(identity(1).shares(&identity(2), "hints"));
        assert!(!identity(1).shares(&identity(2), "only-1"));
    }
}

#[test]
fn the_first_comparison_of_the_clocks_contains_the_truth() {
    let (left, right) = run(initiator(local(1)), responder(local(2)), 1000);
    for (side, offset_us) in [(&left, -1000), (&right, 1000)] {
        let clock = established(side).clock;
        let (lowest, highest) = (clock.asked_at_us - clock.theirs_us, clock.answered_at_us - clock.theirs_us);
        assert!((lowest..=highest).contains(&offset_us), "{clock:?}");
        assert_eq!(highest - lowest, 20, "the error is one round trip");
    }
}

#[test]
fn bytes_after_the_handshake_are_left_for_the_connection() {
    let mut left = Side::new(initiator(local(1)));
    let mut right = Side::new(responder(local(2)));
    for _ in 0..2 {
        let bytes = left.send();
        right.receive(&bytes, 0);
        let bytes = right.send();
        left.receive(&bytes, 0);
    }
    let mut last = left.send();
    last.extend_from_slice(b"frames");
    right.receive(&last, 0);
    assert!(established(&right).version == 1);
    assert_eq!(&right.arrived[..], b"frames");
}

#[test]
fn a_node_with_another_secret_gets_nowhere_and_learns_nothing() {
    let stranger = LocalPeer { identity: identity(1), secret: Secret::new(b"another secret of 16 bytes").unwrap() };
    let (left, right) = run(initiator(stranger.clone()), responder(local(2)), 1000);
    assert_eq!(failure(&right), &HandshakeError::SecretDiffers);
    assert_eq!(right.sent.len(), 48, "the responder said nothing but its greeting");
    assert_eq!(left.handshake.ended(), HandshakeError::ClosedAfterProof);

    let (left, right) = run(initiator(local(1)), Handshake::responder(stranger, [9; 32]), 1000);
    assert_eq!(failure(&right), &HandshakeError::SecretDiffers);
    assert_eq!(left.sent.len(), UNPROVED_BYTES_MAX, "the initiator said nothing but greeting and proof");
}

#[test]
fn a_listener_without_the_secret_does_not_learn_who_connects() {
    let mut left = Side::new(initiator(local(1)));
    let greeting = left.send();
    let mut reply = responder(local(2));
    reply.receive(&mut BytesMut::from(&greeting[..]), 0, &mut |_| Ok(())).unwrap();
    let mut forged = reply.take_output();
    // A hello without a proof of the secret.
    let payload = Hello { clock_us: 0, identity: identity(2), channel: Lane::Bulk.into() }.encode();
    forged.extend_from_slice(&((payload.len() + 32) as u16).to_le_bytes());
    forged.push(Kind::Hello.code());
    forged.extend_from_slice(&payload);
    forged.extend_from_slice(&[0; 32]);
    left.receive(&forged, 0);
    assert_eq!(failure(&left), &HandshakeError::SecretDiffers);
    left.send();
    assert_eq!(left.sent.len(), UNPROVED_BYTES_MAX);
}

#[test]
fn what_was_recorded_of_one_handshake_is_of_no_use_in_another() {
    let (left, right) = run(initiator(local(1)), responder(local(2)), 1000);
    established(&right);
    let mut fresh = Side::new(Handshake::responder(local(2), [3; 32]));
    fresh.receive(&left.sent, 0);
    assert_eq!(failure(&fresh), &HandshakeError::SecretDiffers);
    let mut fresh = Side::new(Handshake::initiator(local(1), Some(NodeId::new(2)), Lane::Bulk, [4; 32]));
    fresh.send();
    fresh.receive(&right.sent, 0);
    assert_eq!(failure(&fresh), &HandshakeError::SecretDiffers);
}

#[test]
fn reflected_messages_are_refused() {
    let mut left = Side::new(initiator(local(1)));
    let greeting = left.send();
    left.receive(&greeting, 0);
    assert_eq!(failure(&left), &HandshakeError::Role, "its own greeting");

    // The greeting with the role of a responder, then the initiator's own proof.
    let mut left = Side::new(initiator(local(1)));
    let mut greeting = left.send();
    greeting[9] = 2;
    left.receive(&greeting, 0);
    let proof = left.send();
    left.receive(&proof, 0);
    assert_eq!(failure(&left), &HandshakeError::SecretDiffers);
}

#[test]
fn a_node_that_is_led_back_to_itself_refuses() {
    // Somebody in the middle joins a node's outgoing connection to its own port.
    let own = Handshake::initiator(local(1), None, Lane::Requests, [1; 32]);
    let (left, right) = run(own, Handshake::responder(local(1), [2; 32]), 1000);
    assert_eq!(refusal_kind(&left), RefusalKind::SameNode);
    assert_eq!(refusal_kind(&right), RefusalKind::SameNode);
    let mut copy = local(1);
    copy.identity.session = 9;
    let (left, _) = run(Handshake::initiator(local(1), None, Lane::Bulk, [1; 32]), responder(copy), 1000);
    assert!(failure(&left).to_string().contains("is a copy of the other"), "{}", failure(&left));
}

#[test]
fn both_sides_learn_why_a_known_node_is_refused() {
    let mut other = local(2);
    other.identity.cluster = 8;
    let (left, right) = run(initiator(local(1)), responder(other), 1000);
    assert_eq!(refusal_kind(&left), RefusalKind::OtherCluster);
    assert_eq!(refusal_kind(&right), RefusalKind::OtherCluster);
    assert!(failure(&right).to_string().contains("the clusters differ"));

    let (left, right) = run(initiator(local(1)), responder(local(3)), 1000);
    assert_eq!((refusal_kind(&left), refusal_kind(&right)), (RefusalKind::WrongNode, RefusalKind::WrongNode));

    let mut right = Side::new(responder(local(2)));
    right.refuse = Some(Refusal::new(RefusalKind::NodeIdInUse, "in use"));
    let (left, right) = run_sides(Side::new(initiator(local(1))), right, 1000);
    assert_eq!(failure(&left), &HandshakeError::RefusedByPeer(Refusal::new(RefusalKind::NodeIdInUse, "in use")));
    assert_eq!(refusal_kind(&right), RefusalKind::NodeIdInUse);

    let mut left = Side::new(initiator(local(1)));
    left.refuse = Some(Refusal::new(RefusalKind::NotAdmitted, "removed"));
    let (_, right) = run_sides(left, Side::new(responder(local(2))), 1000);
    assert_eq!(refusal_kind(&right), RefusalKind::NotAdmitted);
}

#[test]
fn the_highest_common_version_is_chosen() {
    let run_versions = |left: (u16, u16), right: (u16, u16)| {
        let left = initiator(local(1)).with_versions(left.0, left.1);
        run(left, responder(local(2)).with_versions(right.0, right.1), 1000)
    };
    for (left, right, version) in [((1, 3), (2, 5), 3), ((2, 5), (1, 3), 3), ((1, 1), (1, 9), 1), ((4, 4), (4, 4), 4)] {
        let sides = run_versions(left, right);
        assert_eq!((established(&sides.0).version, established(&sides.1).version), (version, version));
    }
    let (left, right) = run_versions((1, 2), (3, 4));
    let expected = HandshakeError::NoCommonVersion { ours_min: 1, ours_max: 2, theirs_min: 3, theirs_max: 4 };
    assert_eq!(failure(&left), &expected);
    assert!(matches!(failure(&right), HandshakeError::NoCommonVersion { ours_min: 3, .. }));
}

#[test]
fn somebody_in_the_middle_cannot_lower_the_version() {
    let mut left = Side::new(initiator(local(1)).with_versions(1, 2));
    let mut right = Side::new(responder(local(2)).with_versions(1, 2));
    let mut greeting = left.send();
    greeting[14] = 1;
    right.receive(&greeting, 0);
    let mut reply = right.send();
    reply[14] = 1;
    left.receive(&reply, 0);
    let proof = left.send();
    right.receive(&proof, 0);
    assert_eq!(failure(&right), &HandshakeError::SecretDiffers);
}

#[test]
fn a_stranger_is_read_no_further_than_its_proof() {
    let mut right = Side::new(responder(local(2)));
    assert_eq!(right.handshake.bytes_wanted(), UNPROVED_BYTES_MAX);
    let mut left = initiator(local(1));
    right.receive(&left.take_output(), 0);
    assert_eq!(right.handshake.bytes_wanted(), UNPROVED_BYTES_MAX - 48);
    // A message that announces more than a proof is refused before it has arrived.
    right.receive(&[255, 255, 1], 0);
    assert_eq!(failure(&right), &HandshakeError::TooLong);
    let mut right = Side::new(responder(local(2)));
    right.receive(b"GET / HTTP/1.1\r\n", 0);
    assert_eq!(failure(&right), &HandshakeError::NotAPeer);
}

#[test]
fn a_secret_that_could_be_guessed_is_refused() {
    assert_eq!(Secret::new(b"short").unwrap_err(), SecretTooShort { bytes: 5 });
    assert_eq!(format!("{:?}", local(1).secret), "Secret(..)");
}

proptest! {
    /// Whatever is changed on the way, no side takes the handshake for a good one.
    #[test]
    fn a_changed_byte_ends_the_handshake(at in 0usize..700, xor in 1u8.., from_left: bool) {
        let mut sides = [Side::new(initiator(local(1))), Side::new(responder(local(2)))];
        let mut seen = [0, 0];
        let mut changed = false;
        for turn in 0..8 {
            let from = turn % 2;
            let mut bytes = sides[from].send();
            let place = at.checked_sub(seen[from]).filter(|place| *place < bytes.len());
            if let Some(place) = place.filter(|_| (from == 0) == from_left) {
                bytes[place] ^= xor;
                changed = true;
            }
            seen[from] += bytes.len();
            sides[1 - from].receive(&bytes, 0);
        }
        let done = |side: &Side| matches!(side.outcome, Ok(Some(_)));
        // The responder cannot know whether its last message arrives whole.
        let victim = if from_left { &sides[1] } else { &sides[0] };
        prop_assert_eq!(done(victim), !changed);
    }

    #[test]
    fn any_bytes_end_in_an_error_or_a_wait(bytes in prop::collection::vec(any::<u8>(), 0..400), greeted: bool) {
        crate::fuzzing::handshake(&bytes, greeted);
    }
}
