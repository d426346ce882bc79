//! Who learns of versions that a store cannot read while it works by itself.
//!
//! Whoever reads a key gets the error. A merge, and the making of an ordered index, have no caller
//! that could repair the version, so they tell the observer.

use std::sync::{Arc, OnceLock};

/// Learns of keys whose version cannot be read; see the module.
///
/// A store may tell of one version several times, and may tell of a version that can be read again
/// by now. The observer must be quick, and must not call the store.
pub trait UnreadableObserver: Send + Sync {
    /// The store cannot read the version of `key`.
    fn cannot_be_read(&self, key: &[u8]);
}

/// The place of a store for its observer.
#[derive(Default)]
pub(crate) struct UnreadableNotifier(OnceLock<Arc<dyn UnreadableObserver>>);

impl UnreadableNotifier {
    /// Sets the observer. A later one is ignored.
    pub(crate) fn set(&self, observer: Arc<dyn UnreadableObserver>) {
        let _ = self.0.set(observer);
    }

    /// Tells the observer.
    pub(crate) fn tell(&self, key: &[u8]) {
        if let Some(observer) = self.0.get() {
            observer.cannot_be_read(key);
        }
    }
}
