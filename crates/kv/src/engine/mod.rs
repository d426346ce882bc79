//! The runtime around the coordinators: it reads and writes the partitions of this node, measures
//! time, and runs background work.
//!
//! What it is: the one place with I/O, clocks and threads. A request runs inline on the caller's
//! thread. Only when it would have to wait for a lock or a disk, it is executed again on the I/O
//! threads.
//!
//! What it is not: it has no rules of its own. `coordination` defines how much an answer counts;
//! `partition` defines what a write does to a key.

mod after_reply;
mod background;
mod checked_put;
mod commit_hooks;
mod conditional;
mod coordinators;
mod counted_entries;
mod counted_merge;
mod coverage_state;
mod doubtful_copies;
#[allow(clippy::module_inception, reason = "one main type a file, named after it")]
mod engine;
mod forwarded_puts;
mod get;
mod get_run;
mod hidden_values;
mod kind_counts;
mod kv;
mod leaving;
mod left_copies;
mod local_replica;
mod outdated_put;
mod pending;
mod placements;
mod put;
mod put_progress;
mod put_run;
mod repair_answers;
mod repair_host;
mod replica;
mod replica_memory;
mod request_limiter;
mod stored_form;
mod sync_queue;
mod tombstone_reaper;
mod waking;
mod work_class;
mod work_counts;
mod work_pools;

pub(crate) use conditional::Expectation;
pub(crate) use coordinators::NextCoordinator;
pub(crate) use engine::{Engine, check_bucket, check_key};
pub use hidden_values::LeftAndFailed;
pub use kv::{Kv, WeakKv};
pub use leaving::CountJobs;
pub use local_replica::LocalReplica;
pub use placements::{RequestPlacement, UsedPlacement};
pub(crate) use put_progress::PutProgress;
pub(crate) use put_run::check_room;
pub use repair_answers::RepairAnswers;
pub use repair_host::RepairHost;
pub use replica::Taken;
pub(crate) use replica_memory::LeasedMemory;
pub use replica_memory::ReplicaMemoryStatus;
pub use request_limiter::NoPart;
pub use tombstone_reaper::ReaperWaiting;
pub use waking::PauseNumber;
pub(crate) use work_class::WorkClass;
