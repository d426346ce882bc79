//! The oracle: it knows what clients were told and what faults have destroyed, and says what must
//! be true.
//!
//! It knows nothing of how copies are merged. Each write carries a token, and the token says which
//! write a value comes from. A write that a client made after it had read other values supersedes
//! exactly those values.

mod acknowledged;
mod at_rest;
mod conditions;
mod copies;
mod doubtful;
mod going;
mod holders;
mod key_history;
mod losses;
mod returned;
mod roles;
mod rules;
mod sums;
mod violation;
mod witness;

pub use copies::{Copies, DiskCopy, TOKEN_NAME, Token, tokens_of, value_of};
pub use key_history::{KeyHistory, Outcome};
pub use rules::Oracle;
pub use violation::Violation;

pub(crate) use witness::HostWitness;
pub use witness::{RemovalCounts, Witness};

use crate::bucket_kinds::BucketKind;
use crate::clients::all_keys;
use bytes::Bytes;
use ombak_types::names::encode_storage_key;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A key of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The bucket type.
    pub kind: BucketKind,
    /// Its number in the bucket.
    pub number: u64,
}

impl Key {
    /// The bytes of the key.
    pub fn bytes(&self) -> Bytes {
        format!("k{}", self.number).into()
    }
}

/// The storage key of a key.
pub(crate) fn storage_key_of(key: Key) -> Vec<u8> {
    let mut storage_key = Vec::new();
    encode_storage_key(&key.kind.bucket(), &key.bytes(), &mut storage_key);
    storage_key
}

/// All keys of a run, by their storage keys.
pub(crate) fn storage_keys() -> &'static BTreeMap<Vec<u8>, Key> {
    static KEYS: LazyLock<BTreeMap<Vec<u8>, Key>> =
        LazyLock::new(|| all_keys().map(|key| (storage_key_of(key), key)).collect());
    &KEYS
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/k{}", self.kind.name, self.number)
    }
}
