//! The handle of an engine.

use super::engine::Engine;
use super::repair_host::RepairHost;
use std::sync::{Arc, Weak};

/// The engine of one node. Cheap to clone: clones share everything.
///
/// On a node that is alone, `get`, `put` and `delete` complete without suspending when the data
/// that they need is in memory or in the page cache, so network threads may call them directly.
/// Otherwise they wait for an I/O thread; that needs a tokio runtime with time enabled.
#[derive(Clone)]
pub struct Kv {
    pub(crate) engine: Arc<Engine>,
}

impl Kv {
    /// The engine, for the work that brings copies back to where they belong.
    pub fn repair_host(&self) -> Arc<dyn RepairHost> {
        self.engine.clone()
    }

    /// A handle that keeps no store open, for work that goes on beside requests.
    pub fn downgrade(&self) -> WeakKv {
        WeakKv { engine: Arc::downgrade(&self.engine) }
    }
}

/// A handle of an engine that may be gone.
#[derive(Clone)]
pub struct WeakKv {
    engine: Weak<Engine>,
}

impl WeakKv {
    /// The engine, if it is still there.
    pub fn upgrade(&self) -> Option<Kv> {
        self.engine.upgrade().map(|engine| Kv { engine })
    }
}
