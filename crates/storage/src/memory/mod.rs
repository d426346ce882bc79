//! The memory backend: an ordered map for each partition. Nothing survives the process.
//!
//! The sequence numbers of a memory store that is alone in its partition begin with 1 at each
//! start. They are not confused with those of an earlier run, because each start draws another
//! store id.
//!
//! Invariants: when the store exceeds its limit, the oldest versions are removed until the rest
//! fits; an expired version reads as absent.

mod snapshot;
mod store;
mod terms;
mod terms_check;

pub use store::MemoryConfig;
use store::MemoryStore;

use crate::backend::{Backend, BackendFactory, HeadTerms, NoTerms};
use crate::error::StorageError;
use crate::machine::{Machine, RealMachine};
use crate::seq::SeqSource;
use std::sync::Arc;

/// Opens memory stores; each `open` gives a new, empty one.
#[derive(Clone)]
pub struct MemoryFactory {
    config: MemoryConfig,
    terms: Arc<dyn HeadTerms>,
    machine: Arc<dyn Machine>,
}

impl MemoryFactory {
    /// Stores with these limits and without secondary indexes.
    pub fn new(config: MemoryConfig) -> Self {
        Self::with_terms(config, Arc::new(NoTerms))
    }

    /// Stores with these limits; `terms` reads the index entries in heads.
    pub fn with_terms(config: MemoryConfig, terms: Arc<dyn HeadTerms>) -> Self {
        Self { config, terms, machine: Arc::new(RealMachine) }
    }

    /// Draws the ids of stores on another machine.
    pub fn on_machine(self, machine: Arc<dyn Machine>) -> Self {
        Self { machine, ..self }
    }
}

impl Default for MemoryFactory {
    fn default() -> Self {
        Self::new(MemoryConfig::default())
    }
}

impl BackendFactory for MemoryFactory {
    fn open_in(&self, _partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        Ok(Arc::new(MemoryStore::new(self.config, self.terms.clone(), seqs.clone(), &*self.machine)?))
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}
