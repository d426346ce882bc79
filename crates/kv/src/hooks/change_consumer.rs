//! What follows the changes of the stores and may lag behind them.

use ombak_storage::{Change, CursorLost, Detail};
use ombak_types::Error;

/// Follows the change feed of each partition (`ombak_storage::feed`): search and replication
/// between clusters are consumers. The node keeps the place of a consumer in the file
/// `feed-<name>.json`, and calls it from one thread.
pub trait ChangeConsumer: Send + Sync {
    /// The name: lower-case letters and hyphens. It never changes. Another consumer of the node
    /// with the same name would use the same file, so such a node does not start.
    fn name(&self) -> &'static str;

    /// How much of each version it wants.
    fn detail(&self) -> Detail {
        Detail::Objects
    }

    /// How many appends of a store since its start it may lag behind. Beyond that the store keeps
    /// nothing for it, so it may have to begin anew.
    fn lag_max(&self) -> u64 {
        10_000_000
    }

    /// Forgets everything of a partition: all versions that its store has follow with
    /// [`apply`](Self::apply). `why` is none at the very first time.
    fn begin_anew(&self, partition: u32, why: Option<CursorLost>) -> Result<(), Error>;

    /// Takes changes of a partition. What it took is durable when this returns, because the node
    /// does not repeat it. Changes may come again after a restart. After an error they come again
    /// later.
    fn apply(&self, partition: u32, changes: &[Change]) -> Result<(), Error>;
}
