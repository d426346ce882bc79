//! Bucket types, bucket properties and records of namespaces, kept across restarts.
//!
//! What it is: the registry in which every request looks up the properties of its bucket, and which
//! operators change. Registered functions are records of a namespace in it. Changes are kept in a
//! file, or decided by an authority: the metadata of a cluster.
//!
//! What it is not: it does not decide what a property may hold (`ombak_types::props` does), it
//! compiles no functions, and it does not send changes to other nodes ([`PropertyAuthority`] does).
//!
//! Invariants:
//! * A change is on disk before it takes effect, and it takes effect as a whole.
//! * Only differences from Riak's defaults are stored. Effective properties are therefore always
//!   computed in one place, in this order: defaults, configuration (default type only), type,
//!   bucket.
//! * A type that was activated stays active for ever.

mod authority;
mod backend_choice;
mod class_map;
mod error;
mod file;
mod function_record;
mod functions;
mod hook_users;
mod index_users;
mod merging;
mod namespaces;
mod open_record;
mod record_namespace;
mod registry;
mod registry_functions;
mod registry_records;
mod state;

pub use authority::{PropertyAuthority, ProposedChange, Undecided};
pub use backend_choice::BackendChoice;
pub use error::PropsError;
pub use file::FILE_NAME as BUCKETS_FILE;
#[cfg(any(test, fuzzing))]
pub(crate) use file::check_buckets_file;
pub(crate) use file::examine_file;
pub use function_record::{FunctionRecord, HookUser};
pub use functions::{FUNCTIONS, FunctionsNamespace};
pub use index_users::IndexUsers;
pub use merging::PropertyConflict;
pub use namespaces::Namespaces;
pub use open_record::{NamespaceRecords, OpenRecord, RecordName};
pub use record_namespace::{
    NAMESPACE_BYTES_MAX, RECORD_KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX, RecordBounds, RecordNamespace, RecordUpdate,
};
pub use registry::BucketRegistry;
pub use registry_functions::FunctionList;
pub use registry_records::RecordEdit;
pub use state::Snapshot;
pub use state::{BucketRecord, RecordChange, TypeRecord, TypeStatus, TypeSummary};
