//! What the stores of one root have in common.

use super::budget::IoBudget;
use super::config::BitcaskConfig;
use super::data_file::Handles;
use super::head_cache::HeadCache;
use crate::fs::{FileLock, FileSystem};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) struct Shared {
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) root: PathBuf,
    pub(super) config: BitcaskConfig,
    pub(super) handles: Handles,
    pub(super) heads: HeadCache,
    pub(super) budget: IoBudget,
    /// The partition that merges: one at a time on a node.
    pub(super) merging: Mutex<Option<u32>>,
    pub(super) open_partitions: Mutex<BTreeSet<u32>>,
    #[expect(dead_code, reason = "held as long as a store of the root may write")]
    pub(super) lock: Box<dyn FileLock>,
}
