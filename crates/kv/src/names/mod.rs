//! Names: those that the engine generates, and names in log lines.

mod generated;
mod printable;

pub(crate) use generated::{Vtags, key_text};
pub(crate) use printable::Printable;
