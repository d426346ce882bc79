//! The handshake as a state machine: bytes in, bytes out.

use super::message::{self, GREETING_BYTES, HEADER_BYTES, Hello, Kind, NONCE_BYTES, Role, Versions};
use super::outcome::{Established, HandshakeError, Refusal, RefusalKind, RemotePeer};
use super::secret::{MAC_BYTES, Secret};
use super::words::{FIRST_WORDS, FirstWords, NoWords, WORDS_BYTES_MAX};
use super::{HANDSHAKE_BYTES_MAX, UNPROVED_BYTES_MAX, VERSION_MAX, VERSION_MIN};
use crate::clock::ClockSample;
use crate::identity::{Channel, Lane, NodeIdentity};
use bytes::{Buf, BytesMut};
use ombak_types::NodeId;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What this node brings to its handshakes.
#[derive(Clone, Debug)]
pub struct LocalPeer {
    /// Who this node is.
    pub identity: NodeIdentity,
    /// The secret of its cluster.
    pub secret: Secret,
}

/// Which message is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Greeting,
    Proof,
    Hello,
    Words,
    Verdict,
    Nothing,
}

/// One side of a handshake.
#[derive(Debug)]
pub struct Handshake {
    local: LocalPeer,
    role: Role,
    versions: Versions,
    nonce: [u8; NONCE_BYTES],
    /// The node that the initiator wants to reach.
    expected: Option<NodeId>,
    channel: Channel,
    awaited: Awaited,
    version: u16,
    /// The hash of all bytes that both sides have sent.
    transcript: Sha256,
    received_bytes: usize,
    /// When this side sent the message whose answer carries the peer's clock.
    asked_at_us: i64,
    peer: Option<(RemotePeer, ClockSample)>,
    /// Why the peer is not let in, until its first words have arrived.
    refused: Option<Refusal>,
    words: Arc<dyn FirstWords>,
    output: Vec<u8>,
}

impl Handshake {
    /// The side that opened the connection, to reach the node `expected`. `nonce` is random.
    pub fn initiator(local: LocalPeer, expected: Option<NodeId>, channel: impl Into<Channel>, nonce: [u8; 32]) -> Self {
        let mut this = Self::new(local, Role::Initiator, expected, channel.into(), nonce);
        this.send_greeting();
        this
    }

    /// The side that accepted the connection. `nonce` is random.
    pub fn responder(local: LocalPeer, nonce: [u8; 32]) -> Self {
        Self::new(local, Role::Responder, None, Lane::Requests.into(), nonce)
    }

    fn new(local: LocalPeer, role: Role, expected: Option<NodeId>, channel: Channel, nonce: [u8; 32]) -> Self {
        Self {
            local,
            role,
            versions: Versions { min: VERSION_MIN, max: VERSION_MAX },
            nonce,
            expected,
            channel,
            awaited: Awaited::Greeting,
            version: 0,
            transcript: Sha256::new(),
            received_bytes: 0,
            asked_at_us: 0,
            peer: None,
            refused: None,
            words: Arc::new(NoWords),
            output: Vec::new(),
        }
    }

    /// Tells these first words to a peer that knows such words, if this node's identity says that
    /// it does.
    pub fn with_first_words(mut self, words: Arc<dyn FirstWords>) -> Self {
        self.words = words;
        self
    }

    /// Speaks other protocol versions, as a later or earlier program does.
    #[cfg(test)]
    pub(super) fn with_versions(mut self, min: u16, max: u16) -> Self {
        self.versions = Versions { min, max };
        if self.role == Role::Initiator {
            self.output.clear();
            self.transcript = Sha256::new();
            self.send_greeting();
        }
        self
    }

    /// The greeting of this side, before the other side has said anything.
    pub(crate) fn take_greeting(&mut self) -> Vec<u8> {
        if self.role == Role::Responder {
            self.send_greeting();
        }
        self.take_output()
    }

    /// What has to be sent. It has to be sent also after an error: it may say why.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// How many more bytes may be read from the other side now. A reader that obeys it holds at
    /// most [`UNPROVED_BYTES_MAX`] bytes of a stranger.
    pub fn bytes_wanted(&self) -> usize {
        self.bytes_max().saturating_sub(self.received_bytes)
    }

    const fn bytes_max(&self) -> usize {
        match (self.role, self.awaited) {
            (Role::Responder, Awaited::Greeting | Awaited::Proof) => UNPROVED_BYTES_MAX,
            _ => HANDSHAKE_BYTES_MAX,
        }
    }

    /// The error if the connection ends now.
    pub fn ended(&self) -> HandshakeError {
        match (self.role, self.awaited) {
            (Role::Initiator, Awaited::Hello) => HandshakeError::ClosedAfterProof,
            _ => HandshakeError::Ended,
        }
    }

    /// Takes whole messages off `buffer`. `now_us` is this node's clock. `admit` decides about a
    /// peer that has proved its knowledge of the secret. After the last message, what is left in
    /// `buffer` belongs to the connection.
    pub fn receive(
        &mut self,
        buffer: &mut BytesMut,
        now_us: i64,
        admit: &mut dyn FnMut(&RemotePeer) -> Result<(), Refusal>,
    ) -> Result<Option<Established>, HandshakeError> {
        loop {
            let before = buffer.len();
            let progressed = match self.awaited {
                Awaited::Greeting => self.receive_greeting(buffer, now_us)?,
                Awaited::Nothing => return Err(HandshakeError::Malformed),
                _ => self.receive_message(buffer, now_us, admit)?,
            };
            self.received_bytes += before - buffer.len();
            if self.awaited == Awaited::Nothing {
                let (peer, clock) = self.peer.take().ok_or(HandshakeError::Malformed)?;
                return Ok(Some(Established { peer, version: self.version, clock }));
            }
            if !progressed {
                return Ok(None);
            }
        }
    }

    fn receive_greeting(&mut self, buffer: &mut BytesMut, now_us: i64) -> Result<bool, HandshakeError> {
        if !message::can_be_greeting(buffer) {
            return Err(if message::is_tls(buffer) { HandshakeError::SpeaksTls } else { HandshakeError::NotAPeer });
        }
        let Some(greeting) = buffer.first_chunk::<GREETING_BYTES>() else { return Ok(false) };
        let theirs = message::decode_greeting(greeting, self.role.other())?;
        self.transcript.update(greeting);
        buffer.advance(GREETING_BYTES);
        if self.role == Role::Responder {
            self.send_greeting();
        }
        self.version = self.versions.agree(theirs)?;
        self.awaited = match self.role {
            Role::Initiator => {
                self.asked_at_us = now_us;
                self.send(Kind::Proof, &[]);
                Awaited::Hello
            }
            Role::Responder => Awaited::Proof,
        };
        Ok(true)
    }

    fn receive_message(
        &mut self,
        buffer: &mut BytesMut,
        now_us: i64,
        admit: &mut dyn FnMut(&RemotePeer) -> Result<(), Refusal>,
    ) -> Result<bool, HandshakeError> {
        let Some([low, high, kind]) = buffer.first_chunk::<HEADER_BYTES>().copied() else { return Ok(false) };
        let length = usize::from(u16::from_le_bytes([low, high]));
        if HEADER_BYTES + length > self.bytes_wanted() {
            return Err(HandshakeError::TooLong);
        }
        let payload_bytes = length.checked_sub(MAC_BYTES).ok_or(HandshakeError::Malformed)?;
        if buffer.len() < HEADER_BYTES + length {
            return Ok(false);
        }
        let kind = Kind::from_code(kind).ok_or(HandshakeError::Malformed)?;
        let message = buffer.split_to(HEADER_BYTES + length);
        let (covered, proof) = message.split_at(HEADER_BYTES + payload_bytes);
        self.verify(kind, covered, proof)?;
        let payload = &covered[HEADER_BYTES..];
        match (self.awaited, kind) {
            (Awaited::Proof, Kind::Proof) if payload.is_empty() => {
                self.asked_at_us = now_us;
                self.send_hello(now_us);
                self.awaited = Awaited::Hello;
            }
            (Awaited::Hello, Kind::Hello) => self.receive_hello(payload, now_us, admit)?,
            (Awaited::Words, Kind::Words) => self.receive_words(payload)?,
            (Awaited::Verdict, Kind::Accepted) if payload.is_empty() => self.awaited = Awaited::Nothing,
            (Awaited::Hello | Awaited::Words | Awaited::Verdict, Kind::Refusal) => {
                return Err(HandshakeError::RefusedByPeer(message::decode_refusal(payload)?));
            }
            _ => return Err(HandshakeError::Malformed),
        }
        Ok(true)
    }

    /// Checks that the sender of a message knows the secret and has seen what this side has seen.
    fn verify(&mut self, kind: Kind, covered: &[u8], proof: &[u8]) -> Result<(), HandshakeError> {
        let proof = proof.first_chunk::<MAC_BYTES>().ok_or(HandshakeError::Malformed)?;
        self.transcript.update(covered);
        let said: [u8; 32] = self.transcript.clone().finalize().into();
        if !self.local.secret.verifies(kind.label(self.role.other()), &said, proof) {
            return Err(HandshakeError::SecretDiffers);
        }
        self.transcript.update(proof);
        Ok(())
    }

    fn receive_hello(
        &mut self,
        payload: &[u8],
        now_us: i64,
        admit: &mut dyn FnMut(&RemotePeer) -> Result<(), Refusal>,
    ) -> Result<(), HandshakeError> {
        let hello = Hello::decode(payload)?;
        let clock = ClockSample { asked_at_us: self.asked_at_us, theirs_us: hello.clock_us, answered_at_us: now_us };
        let channel = if self.role == Role::Initiator { self.channel } else { hello.channel };
        let peer = RemotePeer { identity: hello.identity, channel };
        let have_words = self.local.identity.shares(&peer.identity, FIRST_WORDS);
        if let Err(refusal) = self.check(&peer).and_then(|()| admit(&peer)) {
            if have_words && self.role == Role::Responder {
                // The initiator's words are on their way, and its proofs cover them already.
                (self.peer, self.refused) = (Some((peer, clock)), Some(refusal));
                self.awaited = Awaited::Words;
                return Ok(());
            }
            self.send(Kind::Refusal, &message::encode_refusal(&refusal));
            return Err(HandshakeError::Refuses { node: peer.identity.node, refusal });
        }
        let words = if have_words && self.role == Role::Initiator { self.own_words(&peer) } else { Vec::new() };
        self.peer = Some((peer, clock));
        self.awaited = match (self.role, have_words) {
            (Role::Initiator, false) => {
                self.send_hello(now_us);
                Awaited::Verdict
            }
            (Role::Initiator, true) => {
                self.send_hello(now_us);
                self.send(Kind::Words, &words);
                Awaited::Words
            }
            // It answers with its own words and with its verdict.
            (Role::Responder, true) => Awaited::Words,
            (Role::Responder, false) => {
                self.send(Kind::Accepted, &[]);
                Awaited::Nothing
            }
        };
        Ok(())
    }

    fn own_words(&self, peer: &RemotePeer) -> Vec<u8> {
        let words = self.words.tell(peer);
        if words.len() <= WORDS_BYTES_MAX { words } else { Vec::new() }
    }

    /// Hears the peer's first words. The responder has its own words after those of the initiator:
    /// it tells them with its verdict.
    fn receive_words(&mut self, words: &[u8]) -> Result<(), HandshakeError> {
        let Some((peer, _)) = self.peer.clone() else { return Err(HandshakeError::Malformed) };
        if words.len() > WORDS_BYTES_MAX {
            return Err(HandshakeError::TooLong);
        }
        let heard = self.refused.take().map_or_else(|| self.words.hear(&peer, words), Err);
        if let Err(refusal) = heard {
            self.send(Kind::Refusal, &message::encode_refusal(&refusal));
            return Err(HandshakeError::Refuses { node: peer.identity.node, refusal });
        }
        self.awaited = match self.role {
            Role::Initiator => Awaited::Verdict,
            Role::Responder => {
                let words = self.own_words(&peer);
                self.send(Kind::Words, &words);
                self.send(Kind::Accepted, &[]);
                Awaited::Nothing
            }
        };
        Ok(())
    }

    /// What must hold of every peer.
    fn check(&self, peer: &RemotePeer) -> Result<(), Refusal> {
        let (ours, theirs) = (&self.local.identity, &peer.identity);
        if theirs.cluster != ours.cluster && theirs.cluster != 0 && ours.cluster != 0 {
            let text = format!(
                "the clusters differ: node {} belongs to the cluster {:016x}, and node {} to the cluster {:016x}",
                ours.node, ours.cluster, theirs.node, theirs.cluster
            );
            return Err(Refusal::new(RefusalKind::OtherCluster, text));
        }
        if theirs.node == ours.node {
            let text = if theirs.session == ours.session {
                "a node connected to itself".to_owned()
            } else {
                format!("both processes have the node id {}: one data directory is a copy of the other", ours.node)
            };
            return Err(Refusal::new(RefusalKind::SameNode, text));
        }
        match self.expected {
            Some(expected) if expected != theirs.node => {
                let text = format!("the address belongs to the node {}, not to {expected}", theirs.node);
                Err(Refusal::new(RefusalKind::WrongNode, text))
            }
            _ => Ok(()),
        }
    }

    fn send_greeting(&mut self) {
        let greeting = message::encode_greeting(self.role, self.versions, &self.nonce);
        self.transcript.update(greeting);
        self.output.extend_from_slice(&greeting);
    }

    fn send_hello(&mut self, now_us: i64) {
        let hello = Hello { clock_us: now_us, identity: self.local.identity.clone(), channel: self.channel };
        self.send(Kind::Hello, &hello.encode());
    }

    fn send(&mut self, kind: Kind, payload: &[u8]) {
        let at = self.output.len();
        let length = (payload.len() + MAC_BYTES) as u16;
        self.output.extend_from_slice(&length.to_le_bytes());
        self.output.push(kind.code());
        self.output.extend_from_slice(payload);
        self.transcript.update(&self.output[at..]);
        let said: [u8; 32] = self.transcript.clone().finalize().into();
        let proof = self.local.secret.prove(kind.label(self.role), &said);
        self.transcript.update(proof);
        self.output.extend_from_slice(&proof);
    }
}
