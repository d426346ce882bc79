//! Pauses of this node, and what it holds for nodes that were paused.

use crate::engine::{Kv, PauseNumber};
use crate::replica::ClassId;
use ombak_types::NodeId;

impl Kv {
    /// Says that somebody watches this node for pauses, and looks at the clock often: more than
    /// twice in half a second. Returns the pause after which this node goes on, if there was one.
    /// Then requests wait until [`Self::is_awake`], or for a second.
    pub fn look_for_pause(&self) -> Option<PauseNumber> {
        self.engine.waking.look(self.now())
    }

    /// Says that the other members hold nothing for this node, or cannot be asked.
    pub fn is_awake(&self, after: PauseNumber) {
        self.engine.waking.end(after);
    }

    /// Says that nobody watches this node for pauses any more.
    pub fn is_not_watched(&self) {
        self.engine.waking.stop();
    }

    /// Whether this node holds copies that belong to another node, or owes it writes. What it holds
    /// is brought to that node at once, because the node has just shown that it is there.
    pub fn has_something_for(&self, node: NodeId) -> bool {
        let (transfers, placement) = (&self.engine.transfers, self.engine.placement());
        let ns = self.engine.buckets.snapshot().all_n_vals();
        let holds = |class: ClassId| {
            let is_of_node = placement.home(class.partition).is_primary(node, class.n);
            is_of_node && transfers.foreign.is_foreign(class) && !transfers.foreign.holds_nothing(class)
        };
        let mut partitions = transfers.foreign.partitions();
        let has_something = partitions.any(|partition| ns.iter().any(|n| holds(ClassId { partition, n: *n })))
            || self.owed_marks().into_iter().any(|(_, peer)| peer == node);
        if has_something {
            transfers.note_returned(node);
        }
        has_something
    }
}
