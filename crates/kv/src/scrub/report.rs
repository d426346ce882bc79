//! What an operator sees of scrubbing.

use std::time::Duration;

/// Whether stores are being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubState {
    /// The configuration has switched it off.
    Off,
    /// An operator has paused it.
    Paused,
    /// A round is under way.
    Reading,
    /// Everything has been read, and the next round has not begun.
    Waiting,
}

impl ScrubState {
    /// The state in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Paused => "paused",
            Self::Reading => "reading",
            Self::Waiting => "waiting",
        }
    }
}

/// The state of scrubbing on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubReport {
    /// Whether stores are being read.
    pub state: ScrubState,
    /// The rate at which they are read, in bytes a second; 0 if they are not. `u64::MAX`: no limit.
    pub bytes_per_second: u64,
    /// How long a round takes.
    pub interval: Duration,
    /// When the round under way began, or the last one; Unix seconds.
    pub round_began_secs: Option<u64>,
    /// When the next round begins, if this one has ended; Unix seconds.
    pub next_round_secs: Option<u64>,
    /// Bytes that were read since the start of the node.
    pub bytes_read: u64,
    /// The stores with something on a disk, in the order of their partitions.
    pub stores: Vec<ScrubbedStore>,
}

/// The state of one store. What was found is counted since the file with these counts was begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubbedStore {
    /// The partition.
    pub partition: u32,
    /// When everything in it was read last; Unix seconds.
    pub last_full_secs: Option<u64>,
    /// Whether it has been read in this round.
    pub is_done: bool,
    /// Bytes of it that were read in this round.
    pub bytes_read: u64,
    /// Bytes that it has on disk.
    pub bytes: u64,
    /// Current versions that were found to be damaged.
    pub damaged: u64,
    /// Damaged records that nothing pointed at.
    pub obsolete: u64,
    /// Damage of other kinds: headers of files, blocks of indexes, and index entries that did not
    /// fit their objects and were mended.
    pub places: u64,
    /// Versions that were repaired from other replicas since the start of the node, whoever had
    /// found the damage.
    pub repaired: u64,
    /// Versions that wait for their repair.
    pub waiting: u64,
    /// Those of them whose repair has failed: no other node has what could take their place, or
    /// none of those that have it is up.
    pub not_repairable: u64,
}
