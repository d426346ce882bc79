//! The last placement of the homes that a node has adopted.

use crate::saved_json::Formats;
use serde::{Deserialize, Serialize};

/// The name of the file in the directory of a node.
pub(crate) const PLACEMENT_FILE: &str = "placement.json";
pub(crate) const PLACEMENT_FORMATS: Formats = Formats { without_checksum: 0, current: 1 };
/// An upper bound: four rings of the largest size, and a line for each home and field.
pub(crate) const PLACEMENT_BYTES_MAX: u64 = 4 << 20;

/// The content of the file. The placement has a format of its own.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedPlacement<T> {
    format: u32,
    pub(crate) placement: T,
}

impl<T> SavedPlacement<T> {
    pub(crate) const fn new(placement: T) -> Self {
        Self { format: PLACEMENT_FORMATS.current, placement }
    }
}
