//! The inventory of a store: what it has durably promised, so that something missing never looks like absence.
//!
//! The rule, for every backend with files, for one partition and for whole roots: **a store that lacks what it has durably
//! promised does not start, and so the node does not start.** The error names the file, the partition and the remedies. An
//! operator who has to go on without what is missing says so once (`ombak start --accept-loss`), or repairs the store
//! (`ombak admin backend verify --repair`). Either of them records the loss durably before anything is changed that tells
//! of it; from then on the store is not complete ([`Backend::complete`](crate::Backend::complete)).
//!
//! What is promised: that the store of a partition exists; its data files, each with its salt and a length that is synced;
//! and how far the tree of a leveldb store has seen the journal, since nothing else has what came before that. The ledger of
//! leveled and the order of bitcask are made anew from the journal and are not promised. A store in memory promises nothing.
//!
//! An inventory is kept twice: as the file `inventory` in the directory of the store, and as a file named after the partition
//! in a directory of the node ([`InventoryConfig::node_dir`]). Each copy has a generation. The order of writes makes every
//! copy true at every moment, whatever stops the process or the machine:
//!
//! * a file is on disk, with its name, before a copy lists it;
//! * both copies are on disk without a file before that file goes;
//! * the copy of the store is on disk before the copy of the node is written. So the node's generation is never the higher
//!   one, unless somebody put back an older copy of the store.
//!
//! Therefore a crash alone never makes a start refuse. It is written when a file appears, is sealed or removed, at checkpoints
//! and at clean stops, and after the synced length of the active file grew by [`ACTIVE_GROWTH_BYTES`]; never for a single
//! write or sync. What nobody can miss after a kill or a loss of power is therefore bounded: what came after the recorded
//! length of the file that was being appended to, and files that appeared since the last round of background work.

mod check;
mod compare;
mod copies;
mod record;
mod restored;

pub use check::{check_root, promises_anything};
pub(crate) use check::{partitions_in, root_is_gone};
pub(crate) use compare::{Comparison, Lack, LackKind, compare, refusal};
pub(crate) use copies::{CopyState, InventoryCopies};
pub(crate) use record::{Inventory, PromisedFile, RECORD_NAME};
pub use restored::begin_restored;

use std::path::PathBuf;

/// The synced length of an active file is recorded again after it has grown by so many bytes.
pub(crate) const ACTIVE_GROWTH_BYTES: u64 = 16 << 20;

/// How the stores of one root keep their inventories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryConfig {
    /// The directory of the node with the second copy of each inventory of this root. None: only the stores have one, and a
    /// root that is not there cannot be told from a new one.
    pub node_dir: Option<PathBuf>,
    /// Whether a store starts although it lacks something: the operator has said so.
    pub accepts_loss: bool,
}
