//! What stands between a node and its start: the error that says why an engine does not open, and
//! the checks that can be made without opening it.

mod checks;

pub use checks::{check_start, examine_files};
