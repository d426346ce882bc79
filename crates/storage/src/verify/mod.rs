//! Examining the stores of a stopped node, and repairing them.
//!
//! What it is: a reader of everything that stores have on disk, beside the stores: opening one would already change it. For
//! each partition it works out from the journal what a reader should find, compares hints and ledger with that, and says what
//! is damaged, where, and what readers see of it. Repair takes what is damaged out, keeps a copy of it in quarantine, and
//! leaves a store that serves the rest and knows that something is missing.
//!
//! What it is not: it restores nothing. What cannot be read comes from a replica or a backup.
//!
//! Invariants:
//! * examining changes nothing;
//! * what can be read is never lost: a file is removed only when all of that is on disk elsewhere;
//! * before damage is removed, a copy of it and the note that something is missing are on disk;
//! * a repair that a crash interrupts is finished by the next one.
//!
//! Memory: about 100 bytes for each key of the partition that is being read.

mod data_files;
mod exam;
mod ledger;
mod patient;
mod quarantine;
mod repair;
mod report;
mod rewrite;
mod root;
mod versions;

pub use report::{Damage, Effect, FINDINGS_KEPT, Finding, PartitionReport};
pub use root::{StoreKind, StoreRoot, StoreRootConfig};
