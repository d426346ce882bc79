//! The stores of the embedded engine, and the thread that maintains them.

use crate::drivers::network::unix_now;
use ombak_storage::Backend;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two maintenance runs, in which stores merge, sync and expire. It is the same as
/// in a node.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(200);

/// The stores of all partitions. They are closed when this value is dropped.
pub(super) struct Engine {
    stores: Arc<[Arc<dyn Backend>]>,
    ending: Arc<(Mutex<bool>, Condvar)>,
    upkeep: Option<JoinHandle<()>>,
}

impl Engine {
    pub(super) fn start(stores: Vec<Arc<dyn Backend>>) -> io::Result<Self> {
        let stores: Arc<[_]> = stores.into();
        let ending = Arc::new((Mutex::new(false), Condvar::new()));
        let upkeep = {
            let (stores, ending) = (stores.clone(), ending.clone());
            std::thread::Builder::new().name("bench-upkeep".into()).spawn(move || look_after(&stores, &ending))?
        };
        Ok(Self { stores, ending, upkeep: Some(upkeep) })
    }

    /// The store that holds a key.
    pub(super) fn store(&self, key: &[u8]) -> Option<&Arc<dyn Backend>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        self.stores.get((hash % self.stores.len().max(1) as u64) as usize)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("partitions", &self.stores.len()).finish()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let (ending, told) = &*self.ending;
        *ending.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
        if let Some(upkeep) = self.upkeep.take() {
            // A thread that panicked has already printed a message.
            drop(upkeep.join());
        }
        for store in self.stores.iter() {
            if let Err(error) = store.close() {
                eprintln!("ombak-bench: cannot close a store: {error}");
            }
        }
    }
}

fn look_after(stores: &[Arc<dyn Backend>], ending: &(Mutex<bool>, Condvar)) {
    let (ending, told) = ending;
    let mut over = ending.lock().unwrap_or_else(PoisonError::into_inner);
    while !*over {
        let (guard, _) = told.wait_timeout(over, UPKEEP_INTERVAL).unwrap_or_else(PoisonError::into_inner);
        over = guard;
        if *over {
            return;
        }
        drop(over);
        for store in stores {
            if let Err(error) = store.maintain(unix_now().secs()) {
                eprintln!("ombak-bench: maintenance of a store failed: {error}");
                return;
            }
        }
        over = ending.lock().unwrap_or_else(PoisonError::into_inner);
    }
}
