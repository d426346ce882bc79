//! How a call fails, and what the caller knows then.

use bytes::Bytes;
use std::fmt;

/// Why a request was refused without being executed, or what a service answered in place of a
/// result. Codes below [`RefusalCode::SERVICES_FROM`] are the transport's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefusalCode(pub u16);

impl RefusalCode {
    /// The deadline had passed, or the request was older than its lifetime, when it arrived.
    pub const EXPIRED: Self = Self(1);
    /// The peer has no service of this number.
    pub const UNKNOWN_SERVICE: Self = Self(2);
    /// The body is larger than the peer accepts.
    pub const TOO_LARGE: Self = Self(3);
    /// The peer is shutting down.
    pub const SHUTTING_DOWN: Self = Self(4);
    /// The first code that services assign by themselves.
    pub const SERVICES_FROM: u16 = 256;

    /// Whether the transport refused the request, so that no service ever saw it.
    pub const fn is_of_transport(self) -> bool {
        self.0 < Self::SERVICES_FROM
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EXPIRED => f.write_str("the request arrived too late"),
            Self::UNKNOWN_SERVICE => f.write_str("the peer has no such service"),
            Self::TOO_LARGE => f.write_str("the request is larger than the peer accepts"),
            Self::SHUTTING_DOWN => f.write_str("the peer is shutting down"),
            Self(code) => write!(f, "code {code}"),
        }
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The request was provably not delivered: it never left this node as a whole.
    #[error("the peer is not reachable")]
    Unreachable,
    /// A bounded queue is full, here or at the peer. The request was not executed.
    #[error("too many requests are under way")]
    Overload,
    /// The transport or the service refused the request.
    #[error("the peer refused the request: {code}")]
    Refused {
        /// The reason.
        code: RefusalCode,
        /// What the service added.
        detail: Bytes,
    },
    /// The deadline passed after the request left this node. Whether it was executed is unknown.
    #[error("the peer did not answer in time")]
    Timeout,
    /// The connection ended after the request left this node. Whether it was executed is unknown.
    #[error("the connection to the peer ended before the answer")]
    Closed,
    /// The peer could not give its answer back: it did not fit a bound, or the service gave none.
    /// Whether the request was executed is unknown.
    #[error("the answer of the peer was lost")]
    AnswerLost,
    /// The two nodes have no protocol version in common. The request was not delivered.
    #[error("the peer speaks no common protocol version")]
    VersionMismatch,
}

impl PeerError {
    /// Whether the request was provably not executed, so that another node may be asked instead
    /// (docs/design/replication.md §12). The codes of a service say by themselves what they mean.
    pub const fn was_not_executed(&self) -> bool {
        match self {
            Self::Unreachable | Self::Overload | Self::VersionMismatch => true,
            Self::Refused { code, .. } => code.is_of_transport(),
            Self::Timeout | Self::Closed | Self::AnswerLost => false,
        }
    }
}
