//! The settings of functions in JavaScript.

use super::problem::Problem;
use super::reader::Reader;
use ombak_script::Limits;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of functions in JavaScript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSettings {
    /// The number of threads for map functions.
    pub map_threads: usize,
    /// The number of threads for reduce functions.
    pub reduce_threads: usize,
    /// The number of threads for pre-commit hooks, and for post-commit hooks.
    pub hook_threads: usize,
    /// How much memory a function may use, in bytes.
    pub memory_bytes_max: usize,
    /// How much stack a function may use, in bytes.
    pub stack_bytes_max: usize,
    /// How long a call may take.
    pub call_time_max: Duration,
    /// Whether requests may bring functions along.
    pub allows_anonymous: bool,
    /// The directory of the libraries.
    pub source_dir: Option<PathBuf>,
}

impl FunctionSettings {
    pub(super) fn of_node(from: &Reader<'_>) -> Result<Self, Problem> {
        let bytes = |key| from.bytes(key).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let source_dir = from.optional("javascript.source_dir").map(|_| from.text("javascript.source_dir"));
        Ok(Self {
            map_threads: from.count("javascript.map_pool_size")?,
            reduce_threads: from.count("javascript.reduce_pool_size")?,
            hook_threads: from.count("javascript.hook_pool_size")?,
            memory_bytes_max: bytes("javascript.maximum_heap_size")?,
            stack_bytes_max: bytes("javascript.maximum_stack_size")?,
            call_time_max: from.duration("javascript.call_time")?,
            allows_anonymous: from.flag("javascript.anonymous_functions")?,
            source_dir: source_dir.transpose()?.map(PathBuf::from),
        })
    }

    /// The limits of each function.
    pub const fn limits(&self) -> Limits {
        Limits {
            call_time_max: self.call_time_max,
            memory_bytes_max: self.memory_bytes_max,
            stack_bytes_max: self.stack_bytes_max,
        }
    }
}
