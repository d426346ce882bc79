//! What a run has made, to see whether the run leaves anything behind.

use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, Weak};

/// An object that a run has made, with its name.
type Noted = (String, Weak<dyn Any + Send + Sync>);

/// The main objects that a run has made. It does not keep them alive. Clones share everything.
#[derive(Clone, Default)]
pub struct Made(Arc<Mutex<Vec<Noted>>>);

impl Made {
    /// Notes an object.
    pub fn note<T: Any + Send + Sync>(&self, name: String, object: &Arc<T>) {
        let weak: Weak<T> = Arc::downgrade(object);
        self.0.lock().push((name, weak));
    }

    /// The objects that are still alive, with the number of their owners.
    pub fn left(&self) -> Vec<String> {
        let made = self.0.lock();
        let left = made.iter().filter(|(_, object)| object.strong_count() > 0);
        left.map(|(name, object)| format!("{name}, which {} hold", object.strong_count())).collect()
    }
}
