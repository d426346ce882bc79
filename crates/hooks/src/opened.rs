//! The functions of hooks, opened once in the pool.

use ombak_functions::{Catalogue, Function, FunctionPool, Lane, LookupError};
use parking_lot::Mutex;
use std::collections::HashMap;

/// How many functions are kept open. Names come from the properties of buckets.
const OPEN_MAX: usize = 1000;

/// An open function, and the version of the source that it was opened with.
struct Opened {
    version: Option<u64>,
    function: Function,
}

/// The functions of hooks by lane and name.
pub(crate) struct OpenFunctions {
    pool: FunctionPool,
    catalogue: Catalogue,
    opened: Mutex<HashMap<(Lane, String), Opened>>,
}

impl OpenFunctions {
    pub(crate) fn new(pool: FunctionPool, catalogue: Catalogue) -> Self {
        Self { pool, catalogue, opened: Mutex::default() }
    }

    /// The function with a name, with its present source.
    pub(crate) fn get(&self, lane: Lane, name: &str) -> Result<Function, LookupError> {
        let version = self.catalogue.version(name);
        let mut opened = self.opened.lock();
        let key = (lane, name.to_owned());
        if let Some(known) = opened.get(&key).filter(|known| known.version == version) {
            return Ok(known.function.clone());
        }
        let function = self.pool.open(lane, self.catalogue.named(name)?);
        if opened.len() >= OPEN_MAX {
            opened.clear();
        }
        opened.insert(key, Opened { version, function: function.clone() });
        Ok(function)
    }
}
