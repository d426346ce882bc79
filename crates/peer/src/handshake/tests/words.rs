//! First words: what two sides tell each other before a connection begins.

use super::*;
use parking_lot::Mutex;
use std::sync::Arc;

/// Tells some words, and remembers what it heard of whom.
#[derive(Debug, Default)]
struct Speaker {
    words: Vec<u8>,
    heard: Mutex<Vec<(NodeId, Vec<u8>)>>,
    refuses: bool,
}

impl Speaker {
    fn of(words: &[u8]) -> Arc<Self> {
        Arc::new(Self { words: words.to_vec(), ..Self::default() })
    }

    fn heard(&self) -> Vec<(NodeId, Vec<u8>)> {
        self.heard.lock().clone()
    }
}

impl FirstWords for Speaker {
    fn tell(&self, _peer: &RemotePeer) -> Vec<u8> {
        self.words.clone()
    }

    fn hear(&self, peer: &RemotePeer, words: &[u8]) -> Result<(), Refusal> {
        self.heard.lock().push((peer.identity.node, words.to_vec()));
        if self.refuses { Err(Refusal::new(RefusalKind::NotAdmitted, "these words")) } else { Ok(()) }
    }
}

/// A node that says that it knows first words.
fn speaking(node: u64) -> LocalPeer {
    let mut local = local(node);
    local.identity.capabilities.insert(FIRST_WORDS.to_owned());
    local
}

#[test]
fn both_sides_hear_the_words_of_the_other_before_the_connection_begins() {
    let longest = vec![7; WORDS_BYTES_MAX];
    for (said, step) in [(&b"hello"[..], 1), (&b""[..], 1_000), (&longest[..], 1_000)] {
        let (one, two) = (Speaker::of(said), Speaker::of(b"and you"));
        let left = initiator(speaking(1)).with_first_words(one.clone());
        let right = responder(speaking(2)).with_first_words(two.clone());
        let (left, right) = run(left, right, step);
        assert_eq!(established(&left).peer.identity.node, NodeId::new(2));
        assert_eq!(established(&right).peer.identity.node, NodeId::new(1));
        assert_eq!(one.heard(), [(NodeId::new(2), b"and you".to_vec())]);
        assert_eq!(two.heard(), [(NodeId::new(1), said.to_vec())]);
    }
}

#[test]
fn a_side_that_does_not_know_words_hears_none() {
    for (left, right) in [(speaking(1), local(2)), (local(1), speaking(2)), (local(1), local(2))] {
        let (one, two) = (Speaker::of(b"hello"), Speaker::of(b"and you"));
        let left = initiator(left).with_first_words(one.clone());
        let right = responder(right).with_first_words(two.clone());
        let (left, right) = run(left, right, 1_000);
        assert!(established(&left).version == 1 && established(&right).version == 1);
        assert!(one.heard().is_empty() && two.heard().is_empty());
    }
}

#[test]
fn words_that_are_too_long_are_not_sent() {
    let (one, two) = (Speaker::of(&[7; WORDS_BYTES_MAX + 1]), Speaker::of(b"and you"));
    let left = initiator(speaking(1)).with_first_words(one);
    let (left, right) = run(left, responder(speaking(2)).with_first_words(two.clone()), 1_000);
    assert!(left.outcome.is_ok() && right.outcome.is_ok());
    assert_eq!(two.heard(), [(NodeId::new(1), Vec::new())]);
}

#[test]
fn a_node_can_refuse_a_peer_for_its_words() {
    let picky = || Arc::new(Speaker { refuses: true, ..Speaker::default() });
    let (left, right) = run(initiator(speaking(1)), responder(speaking(2)).with_first_words(picky()), 1_000);
    assert_eq!((refusal_kind(&left), refusal_kind(&right)), (RefusalKind::NotAdmitted, RefusalKind::NotAdmitted));
    let (left, _) = run(initiator(speaking(1)).with_first_words(picky()), responder(speaking(2)), 1_000);
    assert_eq!(refusal_kind(&left), RefusalKind::NotAdmitted);
}

#[test]
fn a_peer_that_is_not_let_in_learns_why_although_it_has_said_words() {
    for step in [1, 1_000] {
        let words = Speaker::of(b"and you");
        let mut right = Side::new(responder(speaking(2)).with_first_words(words.clone()));
        let refusal = Refusal::new(RefusalKind::NotAdmitted, "removed");
        right.refuse = Some(refusal.clone());
        let left = initiator(speaking(1)).with_first_words(Speaker::of(b"hello"));
        let (left, right) = run_sides(Side::new(left), right, step);
        assert_eq!(failure(&left), &HandshakeError::RefusedByPeer(refusal));
        assert_eq!(refusal_kind(&right), RefusalKind::NotAdmitted);
        assert!(words.heard().is_empty());
    }
}
