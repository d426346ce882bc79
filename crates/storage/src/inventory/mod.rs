//! The inventory of a store: what the store has durably promised, so that something missing is
//! never taken for an absent key.
//!
//! The rule, for every backend with files, for one partition and for a whole root: **a store that
//! lacks something it has durably promised does not start, and so the node does not start.** The
//! error names the file, the partition and the remedies. An operator who must go on without it says
//! so once (`ombak start --accept-loss`), or repairs the store (`ombak admin backend verify
//! --repair`). Both record the loss durably before they change anything that shows it. From then on
//! the store is not complete ([`Backend::complete`](crate::Backend::complete)).
//!
//! Promised are: that the store of a partition exists; its data files, each with its salt and a
//! synced length; and, for leveldb, up to which append the tree has seen the journal, because older
//! journal files are gone. The ledger of leveled and the ordered index of bitcask can be rebuilt
//! from the journal and are not promised. A memory store promises nothing.
//!
//! An inventory has two copies: the file `inventory` in the directory of the store, and a file
//! named after the partition in a directory of the node ([`InventoryConfig::node_dir`]). Each copy
//! has a generation number. The order of writes keeps every copy true at every moment, even if the
//! process or the machine stops:
//!
//! * A file and its name are on disk before a copy lists the file.
//! * Both copies are on disk without a file before that file is removed.
//! * The copy of the store is on disk before the copy of the node is written. So the node's
//!   generation is never higher, unless an older copy of the store was put back.
//!
//! Therefore a crash alone never makes a start fail. The inventory is written when a file appears,
//! is sealed or is removed, at checkpoints, at clean stops, and each time the synced length of the
//! active file has grown by [`ACTIVE_GROWTH_BYTES`]. It is never written for a single write or
//! sync. So the loss that stays unnoticed after a kill or a loss of power is bounded: data beyond
//! the recorded length of the file that was being appended to, and files that appeared since the
//! last round of background work.

mod check;
mod compare;
mod copies;
mod record;
mod restored;
mod small_files;

pub use check::{check_root, has_moved_to, promises_anything};
pub(crate) use check::{partitions_in, root_is_gone};
pub(crate) use compare::{Comparison, MissingItem, MissingKind, Remedies, compare, refusal_error};
pub(crate) use copies::{CopyState, InventoryCopies};
pub(crate) use record::{Inventory, PromisedFile, RECORD_NAME};
pub use restored::begin_restored;
pub(crate) use small_files::SmallFiles;

use std::path::PathBuf;

/// The synced length of an active file is recorded again after it has grown by this many bytes.
pub(crate) const ACTIVE_GROWTH_BYTES: u64 = 16 << 20;

/// How the stores of one root keep their inventories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryConfig {
    /// The directory of the node that has the second copy of each inventory of this root. None:
    /// only the stores have a copy, and a missing root cannot be distinguished from a new one.
    pub node_dir: Option<PathBuf>,
    /// Whether a store starts although it lacks something, because the operator has accepted the
    /// loss.
    pub accepts_loss: bool,
}
