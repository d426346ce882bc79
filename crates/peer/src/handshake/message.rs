//! The bytes of the handshake.
//!
//! ```text
//! Greeting   magic "OMBKPEER", layout u8 (1), role u8, reserved u16 (0), version_min u16,
//!            version_max u16, nonce 32 bytes; 48 bytes in all
//! others     length u16 of what follows the kind, kind u8, payload, proof 32 bytes
//!   Proof    empty
//!   Hello    clock i64, cluster u64, node u64, boot_number u64, session u64, channel u8,
//!            count u16 of capabilities, each: length u8, name; in ascending order
//!   Accepted empty
//!   Refusal  code u16, text
//!   Words    what the node tells this peer first; the transport does not read it
//! ```
//!
//! All integers are little-endian. The greeting keeps its layout in all versions.

use super::outcome::{HandshakeError, Refusal, RefusalKind};
use crate::cursor::{Cursor, Truncated, text_start};
use crate::identity::{CAPABILITIES_MAX, CAPABILITY_BYTES_MAX, Channel, NodeIdentity};
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// The length of a greeting in bytes.
pub(super) const GREETING_BYTES: usize = 48;
/// The length of what precedes the payload of the other messages, in bytes.
pub(super) const HEADER_BYTES: usize = 3;
/// The length of a nonce in bytes.
pub(super) const NONCE_BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"OMBKPEER";
const LAYOUT: u8 = 1;
/// The maximum length of the text of a refusal in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// The part of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It opened the connection.
    Initiator,
    /// It accepted the connection.
    Responder,
}

impl Role {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Initiator => 1,
            Self::Responder => 2,
        }
    }
}

/// The kinds of messages after the greetings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Proof,
    Hello,
    Accepted,
    Refusal,
    Words,
}

impl Kind {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Proof => 1,
            Self::Hello => 2,
            Self::Accepted => 3,
            Self::Refusal => 4,
            Self::Words => 5,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Proof),
            2 => Some(Self::Hello),
            3 => Some(Self::Accepted),
            4 => Some(Self::Refusal),
            5 => Some(Self::Words),
            _ => None,
        }
    }

    /// What the proof of a message of this kind begins with. No label is the start of another.
    pub(super) const fn label(self, role: Role) -> &'static [u8] {
        match (role, self) {
            (Role::Initiator, Self::Proof) => b"ombak peer 1, initiator: proof;",
            (Role::Initiator, Self::Hello) => b"ombak peer 1, initiator: hello;",
            (Role::Initiator, Self::Accepted) => b"ombak peer 1, initiator: accepted;",
            (Role::Initiator, Self::Refusal) => b"ombak peer 1, initiator: refusal;",
            (Role::Initiator, Self::Words) => b"ombak peer 1, initiator: words;",
            (Role::Responder, Self::Proof) => b"ombak peer 1, responder: proof;",
            (Role::Responder, Self::Hello) => b"ombak peer 1, responder: hello;",
            (Role::Responder, Self::Accepted) => b"ombak peer 1, responder: accepted;",
            (Role::Responder, Self::Refusal) => b"ombak peer 1, responder: refusal;",
            (Role::Responder, Self::Words) => b"ombak peer 1, responder: words;",
        }
    }
}

/// The protocol versions that a side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Versions {
    pub(super) min: u16,
    pub(super) max: u16,
}

impl Versions {
    /// The highest version that both sides speak.
    pub(super) fn agree(self, theirs: Self) -> Result<u16, HandshakeError> {
        let version = self.max.min(theirs.max);
        if version >= self.min.max(theirs.min) {
            return Ok(version);
        }
        Err(HandshakeError::NoCommonVersion {
            ours_min: self.min,
            ours_max: self.max,
            theirs_min: theirs.min,
            theirs_max: theirs.max,
        })
    }
}

pub(super) fn encode_greeting(role: Role, versions: Versions, nonce: &[u8; NONCE_BYTES]) -> [u8; GREETING_BYTES] {
    let mut out = [0; GREETING_BYTES];
    out[0..8].copy_from_slice(&MAGIC);
    out[8] = LAYOUT;
    out[9] = role.code();
    out[12..14].copy_from_slice(&versions.min.to_le_bytes());
    out[14..16].copy_from_slice(&versions.max.to_le_bytes());
    out[16..48].copy_from_slice(nonce);
    out
}

/// Whether `bytes`, the start of what arrived, can still become a greeting.
pub(super) fn can_be_greeting(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC).all(|(found, expected)| *found == expected)
}

/// Whether `bytes` begin as a side of TLS does: with an alert or a handshake of version 3.
pub(super) const fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 3, ..])
}

pub(super) fn decode_greeting(bytes: &[u8; GREETING_BYTES], role: Role) -> Result<Versions, HandshakeError> {
    let mut cursor = Cursor::new(bytes);
    if cursor.array()? != MAGIC || cursor.u8()? != LAYOUT {
        return Err(HandshakeError::NotAPeer);
    }
    if cursor.u8()? != role.code() {
        return Err(HandshakeError::Role);
    }
    if cursor.u16()? != 0 {
        return Err(HandshakeError::Malformed);
    }
    Ok(Versions { min: cursor.u16()?, max: cursor.u16()? })
}

/// What a node says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) clock_us: i64,
    pub(super) identity: NodeIdentity,
    pub(super) channel: Channel,
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let identity = &self.identity;
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(&self.clock_us.to_le_bytes());
        for number in [identity.cluster, identity.node.get(), identity.boot_number, identity.session] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.push(self.channel.code());
        let fits = |name: &&String| !name.is_empty() && name.len() <= CAPABILITY_BYTES_MAX;
        let names: Vec<&String> = identity.capabilities.iter().filter(fits).take(CAPABILITIES_MAX).collect();
        out.extend_from_slice(&(names.len() as u16).to_le_bytes());
        for name in names {
            out.push(name.len() as u8);
            out.extend_from_slice(name.as_bytes());
        }
        out
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, HandshakeError> {
        let mut cursor = Cursor::new(payload);
        let clock_us = cursor.i64()?;
        let (cluster, node) = (cursor.u64()?, NodeId::new(cursor.u64()?));
        let (boot_number, session) = (cursor.u64()?, cursor.u64()?);
        let channel = Channel::from_code(cursor.u8()?).ok_or(HandshakeError::Malformed)?;
        let capabilities = capabilities(&mut cursor)?;
        if !cursor.is_empty() {
            return Err(HandshakeError::Malformed);
        }
        let identity = NodeIdentity { cluster, node, boot_number, session, capabilities };
        Ok(Self { clock_us, identity, channel })
    }
}

fn capabilities(cursor: &mut Cursor<'_>) -> Result<BTreeSet<String>, HandshakeError> {
    let count = usize::from(cursor.u16()?);
    if count > CAPABILITIES_MAX {
        return Err(HandshakeError::TooLong);
    }
    let mut names = BTreeSet::new();
    for _ in 0..count {
        let length = usize::from(cursor.u8()?);
        if length == 0 || length > CAPABILITY_BYTES_MAX {
            return Err(HandshakeError::Malformed);
        }
        let name = std::str::from_utf8(cursor.take(length)?).map_err(|_| HandshakeError::Malformed)?;
        if names.last().is_some_and(|last: &String| last.as_str() >= name) {
            return Err(HandshakeError::Malformed);
        }
        names.insert(name.to_owned());
    }
    Ok(names)
}

pub(super) fn encode_refusal(refusal: &Refusal) -> Vec<u8> {
    let text = text_start(&refusal.text, TEXT_BYTES_MAX).as_bytes();
    [&refusal.kind.code().to_le_bytes(), text].concat()
}

pub(super) fn decode_refusal(payload: &[u8]) -> Result<Refusal, HandshakeError> {
    let (code, text) = payload.split_first_chunk::<2>().ok_or(HandshakeError::Malformed)?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(HandshakeError::TooLong);
    }
    let text = std::str::from_utf8(text).map_err(|_| HandshakeError::Malformed)?;
    Ok(Refusal::new(RefusalKind::from_code(u16::from_le_bytes(*code)), text))
}

impl From<Truncated> for HandshakeError {
    fn from(_: Truncated) -> Self {
        Self::Malformed
    }
}
