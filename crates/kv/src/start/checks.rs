//! Checks of the files of a stopped node.

use crate::buckets::{self, BucketRegistry};
use crate::open_error::OpenError;
use ombak_node_files::{NodeFileError, check_directory, examine_identity};
use ombak_ring::RingSize;
use ombak_storage::fs::FileSystem;
use ombak_types::PropMap;
use std::path::Path;
use std::sync::Arc;

/// Checks whether a node with this ring may start in a directory, as far as the node's own files
/// show. Changes nothing.
pub fn check_start(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    node_name: &str,
    ring_size: u32,
    default_props: &PropMap,
) -> Result<(), OpenError> {
    RingSize::new(ring_size).map_err(|e| OpenError::Config(format!("ring_size: {e}")))?;
    check_directory(&**fs, dir, ring_size)?;
    BucketRegistry::open(fs.clone(), dir, node_name, default_props).map(drop)
}

/// Examines the files in the directory of a stopped node. The errors say what is damaged.
pub fn examine_files(fs: &Arc<dyn FileSystem>, dir: &Path) -> Vec<NodeFileError> {
    examine_identity(&**fs, dir).into_iter().chain(buckets::examine_file(fs, dir)).collect()
}
