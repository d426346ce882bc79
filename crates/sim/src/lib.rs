//! A simulated world for the nodes of a cluster, in which one seed decides everything.
//!
//! What it is: an executor with virtual time, a network and disks that fail, and an oracle that
//! knows what was acknowledged and what a fault has destroyed. It runs the production code of the
//! nodes; only the clock, the random numbers, the threads, the sockets and the files are its own.
//!
//! What it is not: nothing that is shipped depends on it. It does not model the timing of real
//! machines, and it does not replace tests with real processes.
//!
//! In one seed of five the disks get bad sectors, of which reads fail with EIO. In every seed nodes
//! exchange and scrub, and there are faults that nobody is told of: records rot or vanish, and in
//! some seeds the stores of a node are set back (`decay`). Single stores lose something also when
//! everything is at rest (`cold_decay`).
//!
//! A seed that is divisible by 3 connects the engines by single messages, which are lost, doubled,
//! reordered and late. All others run members (`ombak_cluster::MemberNode`) over ordered streams,
//! with failure detection, and with metadata whose log and votes lie on the simulated disks. They
//! form their cluster by joins, a plan and a commit. One seed in six keeps everything in memory:
//! only those list keys and query indexes, because bitcask keeps the order for that in files of a
//! tree library, which knows no simulated disks.
//!
//! Operators change the members while faults last, and a new plan may replace one halfway. Where
//! engines are connected by messages, a log that is never lost stands for the metadata (`changes`);
//! the goals, the steps and what the engines do are those of the production code.
//!
//! Some nodes join with objects that they have written while they were alone, and some of these
//! joins are taken back before the commit. Nodes that were removed by force start again with what
//! they had, some of them when all changes have ended.
//!
//! What a run checks, after each operation for its key and every 50 operations for all: no event id
//! names two values; no version is empty, torn or forged; each acknowledged value, or what replaced
//! it, is on a disk that no fault has destroyed; no write is executed after its time limit; no read
//! of primaries misses a write if so many primaries took it that they have one in common; of two
//! conditional puts with one precondition one is acknowledged; the sums that nodes keep are those
//! of their stores. At the end of some runs all owners of a key are paused together, and when they
//! go on, a read of all replicas misses nothing (`pauses`). A witness sees each change of a store
//! and checks the others at that moment: a copy for others goes when each primary has it on its
//! disk; a tombstone goes when each primary has it on its disk and nobody else has anything older;
//! nothing that it covers is stored again; only full primaries vote; a member that leaves
//! coordinates nothing in the place of another; what a node brings stays on it until its join is
//! committed. A member that has left holds nothing when it is removed, and a node that was removed
//! brings nothing to others when it returns.
//!
//! It knows by which placement each copy was stored, too. A put is acknowledged when its primaries
//! of each set have it. A home flips when its new set has what the old one had before the begin. A
//! node that becomes a primary owes what it held for others. Only a node that all members know
//! holds copies for others. After healing the changes of the members end within 5 minutes, and then
//! the nodes settle by themselves: no hints, no owed marks, all classes full, and nothing to reap.
//! After two complete rounds of exchanges the replicas of each key are equal without any read,
//! whatever has made them differ, and so are the sums of all primaries. Then reads repair copies
//! that cannot be read: what was acknowledged is there, and nothing that was replaced or deleted is
//! back. A primary drops only what was removed before, or what damage has put in doubt. Listings
//! and queries then show exactly what is there.
//!
//! One seed in five has folds that erase and reap what they find (`folding`). They delete nothing
//! that was written after they have found their keys.
//!
//! [`run_typed_seed`] is another run, of data types: `typed` says what it checks.
//!
//! What is excused:
//! * What only one node held, once the disk of that node was damaged or set back, counts as
//!   destroyed (docs/design/anti-entropy.md §5, rule 6).
//! * Damage to the end of a data file looks like a write that a kill has interrupted, and a store
//!   takes it for that. What such damage brings back may stay.
//!
//! What is not checked yet:
//! * What waits for a copy that cannot be read and that nothing can replace may wait for ever.
//! * The founder is never removed by force: it may be the only member that votes on the metadata.
//! * After a member was marked as down or removed by force, reads and writes of primaries need have
//!   none in common.
//!
//! Invariants:
//! * The same seed gives the same trace, in every process.
//! * No code of the oracle is shared with the code that merges copies.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bad_sectors;
mod bucket_kinds;
mod changes;
mod clients;
mod cluster;
mod cold_decay;
mod decay;
mod disks;
mod exchange_wires;
mod exchanging;
mod faults;
mod folding;
mod made;
pub mod network;
pub mod oracle;
mod pauses;
mod queries;
mod random;
mod records;
mod run;
pub mod scale;
mod settling;
mod starting;
mod times;
mod trace;
mod typed;
mod watched_stores;
mod wires;
pub mod world;

pub use bucket_kinds::{BucketKind, Merging};
pub use changes::ChangeKind;
pub use clients::ClientCounts;
pub use cluster::{BackendKind, Backends, Cluster, Machines, MemberStage, RepairCounts, Wiring};
pub use faults::FaultKind;
pub use random::Random;
pub use run::{Report, run_seed};
pub use trace::Trace;
pub use typed::{TypedReport, run_typed_seed};
