//! What becomes of a class whose sums are not those of its store (docs/design/anti-entropy.md §6).
//!
//! The store has lost or gained something without a write. So what other nodes know to be included
//! here proves nothing any more, and this node's copies may be some that came back.

use ombak_kv::ClassId;
use ombak_kv::repair_host::RepairHost;
use ombak_types::{Error, StoreFailure};

/// Notes durably that a store has lost or gained something without a write, up to this seq: its
/// copies are in doubt, its classes are filling, and they have other tokens. Blocks.
pub(super) fn note(host: &dyn RepairHost, class: ClassId, seq: u64) -> Result<(), Error> {
    if host.transfers().found_damage(host.partitions(), class.partition, Some(seq)) {
        return Ok(());
    }
    Err(StoreFailure::internal("what the sums of a class have shown could not be saved").into())
}
