//! The size limits of a store.

use crate::backend::Write;
use crate::error::StorageError;

/// Longest storage key in bytes: room for a type, a bucket and a key of 65,535 bytes each, with
/// their lengths.
pub const KEY_BYTES_MAX: usize = 200_000;
/// Longest key, head and body of one version together, in bytes. Offsets in data files have 32
/// bits.
pub const VERSION_BYTES_MAX: usize = 2_000_000_000;
/// Sequence numbers have 48 bits: 2.8 × 10^14 for each partition. Writes use them up, and starts
/// skip some (`crate::seq`).
pub(crate) const SEQ_MAX: u64 = (1 << 48) - 1;

/// Refuses a write that exceeds the limits; returns the length of its body otherwise.
pub(crate) fn check_sizes(write: &Write<'_>) -> Result<usize, StorageError> {
    if write.key.len() > KEY_BYTES_MAX {
        let length = write.key.len();
        return Err(StorageError::TooLarge(format!("the key has {length} bytes; at most {KEY_BYTES_MAX} are stored")));
    }
    let mut body_len = 0usize;
    let mut total = write.key.len().saturating_add(write.head.len());
    for part in write.body {
        body_len = body_len.saturating_add(part.len());
        total = total.saturating_add(part.len());
    }
    if total > VERSION_BYTES_MAX {
        return Err(StorageError::TooLarge(format!(
            "the object has {total} bytes; at most {VERSION_BYTES_MAX} are stored"
        )));
    }
    Ok(body_len)
}
