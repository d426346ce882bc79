//! The settings of search.

use super::problem::Problem;
use super::reader::Reader;
use std::path::PathBuf;

/// The settings of search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// Whether the node has search.
    pub is_on: bool,
    /// The directory of the indexes.
    pub dir: PathBuf,
    /// The memory in which documents wait to be written, for all indexes together.
    pub memory_bytes: usize,
}

impl SearchSettings {
    pub(super) fn of_node(from: &Reader<'_>) -> Result<Self, Problem> {
        let memory_bytes = usize::try_from(from.bytes("search.memory")?).unwrap_or(usize::MAX);
        Ok(Self { is_on: from.flag("search")?, dir: from.text("search.root_dir")?.into(), memory_bytes })
    }
}
