//! The digest of a version, which the index stores beside its location.

use ombak_types::Object;

/// Set in the digest of a version that consists only of tombstones. Listings read only the index.
/// With this bit they skip deleted keys without reading values, and the reaper finds tombstones.
const TOMBSTONE: u64 = 1;

/// The digest of a version: 63 bits over the clock and the contents, and one bit that says whether
/// it is a tombstone. That bit follows from the contents, so all 64 bits distinguish versions.
pub fn digest(object: &Object) -> u64 {
    object.digest() & !TOMBSTONE | u64::from(object.is_deleted())
}

/// Whether a digest belongs to a tombstone.
pub const fn is_tombstone(digest: u64) -> bool {
    digest & TOMBSTONE != 0
}
