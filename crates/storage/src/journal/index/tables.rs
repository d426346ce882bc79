//! The tables that an index has on disk, for scrubbing.

use std::any::Any;
use std::path::PathBuf;

/// The tables of an index at one moment. They stay on disk while this lives.
pub(crate) struct IndexTables {
    /// The tables in the order of their numbers.
    pub(crate) tables: Vec<IndexTable>,
    /// Keeps them in place.
    pub(crate) _pin: Box<dyn Any + Send>,
}

/// A table: a file that is written once.
#[derive(Clone, Debug)]
pub(crate) struct IndexTable {
    /// A later table has a higher number.
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    /// XXH3 of the whole file, 128 bits.
    pub(crate) checksum: u128,
}

/// A damaged part of an index on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexDamage {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    /// 0: the whole file.
    pub(crate) length: u64,
    pub(crate) what: &'static str,
}
