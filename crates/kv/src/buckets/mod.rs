//! Bucket types and bucket properties: which exist, what they say, kept across restarts.
//!
//! What it is: the registry that every request asks for the properties of its bucket, and that operators change.
//!
//! What it is not: it does not decide what a property may hold (`ombak_types::props`), nor does it spread changes to
//! other nodes.
//!
//! Invariants:
//! * a change is on disk before it takes effect, and takes effect whole;
//! * what is kept are the differences from Riak's defaults, so that effective properties are always computed in one
//!   place: defaults, configuration (default type only), type, bucket;
//! * a type that was activated stays active for ever.

mod error;
mod file;
mod registry;
mod state;

pub use error::PropsError;
#[cfg(any(test, fuzzing))]
pub(crate) use file::check_buckets_file;
pub(crate) use file::{FILE_NAME as BUCKETS_FILE, examine_file};
pub use registry::BucketRegistry;
pub use state::{TypeStatus, TypeSummary};
