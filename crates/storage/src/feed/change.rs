//! One change of a key.

use crate::fold::FoldEntry;
use bytes::Bytes;

/// Where a change came from. It is known as long as the layer above remembers it, and is not on
/// disk: a spare flag of a record would make every earlier version of this program take the record
/// for damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Nobody remembers it.
    #[default]
    Unknown,
    /// A put that this node coordinated.
    Coordinated,
    /// A copy of a put that another node coordinated.
    Replica,
    /// A copy that replaced one that could not be read, or a version that was taken back.
    Repair,
    /// A transfer: a copy came from another node or was given to it.
    Handoff,
    /// The reaper removed a tombstone or an expired version.
    Reap,
    /// The store removed a version by itself, by its age or for lack of memory.
    Expiry,
}

impl Origin {
    /// The number of an origin, below 16.
    pub const fn number(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Coordinated => 1,
            Self::Replica => 2,
            Self::Repair => 3,
            Self::Handoff => 4,
            Self::Reap => 5,
            Self::Expiry => 6,
        }
    }

    /// The origin with a number. A number that no origin has is unknown.
    pub const fn of_number(number: u8) -> Self {
        match number {
            1 => Self::Coordinated,
            2 => Self::Replica,
            3 => Self::Repair,
            4 => Self::Handoff,
            5 => Self::Reap,
            6 => Self::Expiry,
            _ => Self::Unknown,
        }
    }
}

/// The state of a key.
#[derive(Clone, Debug)]
pub enum KeyState {
    /// The key has this version, which may have expired. Head and body are there as the
    /// [`Detail`](crate::Detail) of the query asks.
    Stored(FoldEntry),
    /// The store has no version of the key.
    Removed {
        /// The storage key.
        key: Bytes,
        /// A place in the append order that is not before the version that is gone.
        seq: u64,
    },
}

/// One change of a key.
#[derive(Clone, Debug)]
pub struct Change {
    /// The state of the key at the moment that the walk shows.
    pub state: KeyState,
    /// Where the change came from.
    pub origin: Origin,
}

impl Change {
    /// A version, from an origin that the store does not know.
    pub(crate) fn stored(entry: FoldEntry) -> Self {
        Self { state: KeyState::Stored(entry), origin: Origin::Unknown }
    }

    /// A removal.
    pub(crate) fn removed(key: Bytes, seq: u64, origin: Origin) -> Self {
        Self { state: KeyState::Removed { key, seq }, origin }
    }

    /// The storage key.
    pub fn key(&self) -> &Bytes {
        match &self.state {
            KeyState::Stored(entry) => &entry.key,
            KeyState::Removed { key, .. } => key,
        }
    }

    /// The place of the change in the store's append order.
    pub fn seq(&self) -> u64 {
        match &self.state {
            KeyState::Stored(entry) => entry.seq,
            KeyState::Removed { seq, .. } => *seq,
        }
    }
}
