//! How a handshake ends.

use crate::clock::ClockSample;
use crate::identity::{Channel, NodeIdentity};
use ombak_types::NodeId;
use std::{fmt, io};

/// Who the peer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePeer {
    /// What it said about itself.
    pub identity: NodeIdentity,
    /// Which connection the initiator has opened.
    pub channel: Channel,
}

/// A handshake that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// Who the peer is.
    pub peer: RemotePeer,
    /// The protocol version of the connection.
    pub version: u16,
    /// The first comparison of the clocks.
    pub clock: ClockSample,
}

/// Why a node that knows the secret is refused. The number is what the other side reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// It belongs to another cluster.
    OtherCluster,
    /// It has another id than the initiator asked for.
    WrongNode,
    /// It has the id of this node.
    SameNode,
    /// Another live process has its id.
    NodeIdInUse,
    /// It was removed from the cluster, or is not wanted for another reason.
    NotAdmitted,
    /// Its data directory is older than the members of the cluster know it.
    OlderDirectory,
    /// A kind that a later version has added.
    Other(u16),
}

impl RefusalKind {
    pub(super) const fn code(self) -> u16 {
        match self {
            Self::OtherCluster => 1,
            Self::WrongNode => 2,
            Self::SameNode => 3,
            Self::NodeIdInUse => 4,
            Self::NotAdmitted => 5,
            Self::OlderDirectory => 6,
            Self::Other(code) => code,
        }
    }

    pub(super) const fn from_code(code: u16) -> Self {
        match code {
            1 => Self::OtherCluster,
            2 => Self::WrongNode,
            3 => Self::SameNode,
            4 => Self::NodeIdInUse,
            5 => Self::NotAdmitted,
            6 => Self::OlderDirectory,
            other => Self::Other(other),
        }
    }
}

/// Why a node that knows the secret is refused, with a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind.
    pub kind: RefusalKind,
    /// What an operator should know. The peer reads it, too.
    pub text: String,
}

impl Refusal {
    /// A refusal with its text.
    pub fn new(kind: RefusalKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a handshake failed, for the log of this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The other side does not speak this protocol.
    #[error("the other side is no node of Ombak")]
    NotAPeer,
    /// The other side speaks TLS, and this node does not.
    #[error(
        "the other side speaks TLS, and this node has no certificate configured: all nodes of a cluster have one, or none"
    )]
    SpeaksTls,
    /// The stream below failed.
    #[error("{text}")]
    Stream {
        /// The kind of the error.
        kind: io::ErrorKind,
        /// The reason.
        text: String,
    },
    /// The other side sent a greeting of our own role, for example our own greeting.
    #[error("the other side does not play its part of the handshake")]
    Role,
    /// The versions of the two programs have nothing in common.
    #[error(
        "no common protocol version: this node speaks {ours_min} to {ours_max}, the other side {theirs_min} to {theirs_max}"
    )]
    NoCommonVersion {
        /// Our lowest version.
        ours_min: u16,
        /// Our highest version.
        ours_max: u16,
        /// The lowest version of the other side.
        theirs_min: u16,
        /// The highest version of the other side.
        theirs_max: u16,
    },
    /// The other side does not know the secret of this cluster.
    #[error("the secret differs: the other side did not prove that it knows the secret of this cluster")]
    SecretDiffers,
    /// The responder closed the connection after our proof.
    #[error(
        "the other side closed the connection after this node's proof: its secret may differ, and its log says why"
    )]
    ClosedAfterProof,
    /// The connection ended during the handshake.
    #[error("the connection ended during the handshake")]
    Ended,
    /// The other side did not finish in time.
    #[error("the other side did not finish the handshake in time")]
    TooSlow,
    /// A message is longer than any message at its place.
    #[error("a message of the handshake is too long")]
    TooLong,
    /// A message is not what belongs at its place.
    #[error("a message of the handshake is malformed")]
    Malformed,
    /// This node refuses the peer.
    #[error("this node refuses the peer {node}: {refusal}")]
    Refuses {
        /// The id of the peer.
        node: NodeId,
        /// The reason.
        refusal: Refusal,
    },
    /// The peer refuses this node.
    #[error("the peer refuses this node: {0}")]
    RefusedByPeer(Refusal),
}
