//! What takes the keys of a fold as they are found.

use super::wants::FoundKey;
use ombak_runtime::BoxFuture;
use ombak_types::Error;

/// Takes the keys of a fold in pieces of a bounded size, in no order. No key comes twice.
pub trait KeyConsumer: Send {
    /// Takes some keys. The fold waits for it, and ends with an error that it returns.
    fn take(&mut self, keys: Vec<FoundKey>) -> BoxFuture<'_, Result<(), Error>>;
}
