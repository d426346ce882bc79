//! The kinds of work, in the order of importance.
//!
//! What it is: what the worker needs to know of each kind: which pieces of it there are to do now,
//! and how one is done. A new kind is one file with a [`Kind`], and one line in [`all`].
//!
//! What it is not: a kind knows nothing of pauses, limits and other kinds. The worker chooses.

mod filling;
mod hand_back;
mod ordered;
mod owed;
mod proofs;
mod unreadable;

use crate::Host;
use crate::work::Work;
use ombak_kv::ClassId;
use ombak_ring::placement::Placement;
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// All kinds. What comes first is begun first.
pub(crate) fn all() -> Vec<Box<dyn Kind>> {
    vec![
        Box::new(unreadable::Unreadable),
        Box::new(ordered::Ordered),
        Box::new(proofs::Proofs),
        Box::new(owed::Owed),
        Box::new(hand_back::HandBack::default()),
        Box::new(filling::Filling),
    ]
}

/// What one piece of work is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The whole node.
    Node,
    /// A home partition.
    Partition(u32),
    /// A class.
    Class(ClassId),
    /// A class and another node.
    Peer(ClassId, NodeId),
}

impl Place {
    /// The home partition that the piece is about.
    pub(crate) const fn home(&self) -> Option<u32> {
        match self {
            Self::Node => None,
            Self::Partition(partition) => Some(*partition),
            Self::Class(class) | Self::Peer(class, _) => Some(class.partition),
        }
    }
}

/// Whose places a piece takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The piece ends by itself, soon.
    Short,
    /// The piece ends by itself, and may take long. One place is left to short ones.
    Long,
    /// The piece waits for other nodes' work. Such pieces have places of their own, so that two
    /// nodes never wait for each other's places.
    WaitsForOthers,
}

/// What became of a piece of work.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There is nothing left of it.
    Done,
    /// Something is left. It is tried again after a pause, which grows.
    Left,
    /// Other nodes do the rest. It is looked at again after the shortest pause.
    LeftToOthers,
    /// It failed. It is tried again after a pause, which grows.
    Failed(Error),
}

impl From<Result<(), Error>> for Outcome {
    fn from(ended: Result<(), Error>) -> Self {
        ended.map_or_else(Self::Failed, |()| Self::Done)
    }
}

/// What is known when the worker looks for work.
pub(crate) struct Look<'a> {
    pub(crate) work: &'a Arc<Work>,
    pub(crate) host: &'a Host,
    pub(crate) placement: &'a Placement,
    /// This node.
    pub(crate) here: NodeId,
    /// The n of all classes.
    pub(crate) ns: BTreeSet<u32>,
    /// The other nodes of the placement to which copies can be brought.
    pub(crate) up: &'a BTreeSet<NodeId>,
    /// Whether this node pushes copies at all. An operator changes that at any time. A kind that
    /// asked for itself could see pushes enabled and [`Self::proofs`] from before that.
    pub(crate) gives_pushes: bool,
    /// The proofs that are to be made, while this node pushes copies at all.
    pub(crate) proofs: Vec<(ClassId, NodeId)>,
}

/// One kind of work. What it must remember between looks, it keeps behind a lock.
pub(crate) trait Kind: Send + Sync {
    /// Its name, for logs.
    fn name(&self) -> &'static str;

    /// Whose places its pieces take.
    fn lane(&self) -> Lane {
        Lane::Short
    }

    /// The pieces that there are to do now, whether they wait for a pause or not. Called often: it
    /// neither blocks nor reads from a store.
    fn due(&self, look: &Look<'_>) -> Vec<Place>;

    /// Begins a piece that [`Self::due`] has named.
    fn begin(&self, look: &Look<'_>, place: Place) -> BoxFuture<'static, Outcome>;

    /// Forgets what it remembers of homes that have changed. `is_same` says of each home whether it
    /// has not.
    fn forget_changed(&self, _is_same: &dyn Fn(u32) -> bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_promised_to_others_comes_before_what_this_node_lacks() {
        let names: Vec<_> = all().iter().map(|kind| kind.name()).collect();
        assert_eq!(names, ["unreadable", "ordered", "proof", "owed", "hand back", "filling"]);
        let all = all();
        let waiting = all.iter().filter(|kind| kind.lane() == Lane::WaitsForOthers);
        let waiting: Vec<_> = waiting.map(|kind| kind.name()).collect();
        assert_eq!(waiting, ["unreadable", "filling"], "two nodes must not wait for each other's places");
    }
}
