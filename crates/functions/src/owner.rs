//! Whose work runs in a pool.

use std::fmt;
use std::sync::Arc;

/// For whom a function runs, such as a job, or a hook of one bucket. Owners share a lane fairly.
/// Two owners with the same name are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Creates an owner.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
