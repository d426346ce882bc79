//! What stands between a node and its start: the error that says why an engine does not open, and
//! the checks that can be made without opening it.

mod checks;
mod open_error;

pub use checks::{check_start, examine_files};
pub use open_error::OpenError;
