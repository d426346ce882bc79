//! Names that the engine generates.

mod generated;

pub(crate) use generated::{Vtags, key_text};
