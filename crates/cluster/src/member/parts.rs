//! What a member is made of.

use super::seeds::Seeds;
use crate::node::NodeParts;
use ombak_metadata::Timing;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What a member is made of.
pub struct MemberParts {
    /// The engine and the transport. Their admission is replaced.
    pub node: NodeParts,
    /// The directory of the metadata.
    pub metadata_dir: PathBuf,
    /// Where other nodes reach this one; `None`: where it listens.
    pub advertised: Option<SocketAddr>,
    /// Each window of so many successive partitions shall have distinct owners.
    pub target_n_val: u32,
    /// Each window of so many successive partitions shall have distinct locations, if any location
    /// is known.
    pub target_location_n_val: u32,
    /// The nodes that a new node asks before it serves; none: it asks nobody. Under their names a
    /// node also looks for members that are away.
    pub peers: Seeds,
    /// How long things take.
    pub timing: MemberTiming,
}

/// How long things take in the life of a member. All nodes of a cluster should have the same.
#[derive(Clone, Debug)]
pub struct MemberTiming {
    /// The times of the metadata.
    pub metadata: Timing,
    /// How long a command of an operator or a change of properties may take.
    pub command: Duration,
    /// How long a question to another member may take.
    pub question: Duration,
    /// How long a closing may last before members end it. It is longer than a command, so that only
    /// those of drivers that died are ended so.
    pub closing_max: Duration,
    /// How often the driver of a ring change asks the members, if nothing changes.
    pub ring_round: Duration,
    /// How soon the driver asks them again after a round that learned or did something.
    pub ring_round_min: Duration,
    /// How often a running node draws a milestone of its directory. A copy of the directory that is
    /// restored later is recognised if it is older than that.
    pub milestone: Duration,
}

impl Default for MemberTiming {
    fn default() -> Self {
        Self {
            metadata: Timing::default(),
            command: Duration::from_secs(10),
            question: Duration::from_secs(3),
            closing_max: Duration::from_secs(15),
            ring_round: Duration::from_millis(500),
            ring_round_min: Duration::from_millis(20),
            milestone: Duration::from_secs(60),
        }
    }
}
