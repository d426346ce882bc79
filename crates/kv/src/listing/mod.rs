//! Listings of keys and buckets.

#[allow(clippy::module_inception, reason = "one main type a file, named after it")]
mod listing;
mod walk;

pub use listing::Listing;
pub(crate) use listing::Walk;
pub(crate) use walk::{BUCKETS_MAX, ENTRIES_MAX, ListWalk};
