//! Names: those that the engine generates, the random numbers in them, and names in log lines.

mod generated;
mod printable;
mod random;

pub(crate) use generated::{Vtags, key_text};
pub(crate) use printable::Printable;
pub(crate) use random::{random_160, random_u64};
