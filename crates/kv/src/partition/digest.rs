//! What the index keeps of a version besides its place.

use ombak_types::Object;

/// Set in the digest of a version that is nothing but tombstones. Listings see the index only; this bit lets them pass
/// over deleted keys without reading values, and lets the reaper find them.
const TOMBSTONE: u64 = 1;

/// The digest of a version: 63 bits over clock and contents, and whether it is a tombstone. (Whether it is one follows
/// from the contents, so versions are told apart by all 64 bits.)
pub fn digest(object: &Object) -> u64 {
    object.digest() & !TOMBSTONE | u64::from(object.is_deleted())
}

/// Whether a digest belongs to a tombstone.
pub const fn is_tombstone(digest: u64) -> bool {
    digest & TOMBSTONE != 0
}
