//! Verification of the stores of a stopped node, and their repair.
//!
//! What it is: a reader of everything that stores have on disk. It does not open the stores,
//! because opening a store changes it. For each partition it derives from the journal what a reader
//! should find, compares hint files and ledger with that, and reports what is damaged, where, and
//! how reads are affected. A repair removes the damage, keeps a copy of it in quarantine, and
//! leaves a store that serves the rest and records that something is missing.
//!
//! What it is not: it restores nothing. Lost data comes from a replica or a backup.
//!
//! Invariants:
//! * A verification changes nothing.
//! * Readable data is never lost: a file is removed only when its readable content is on disk
//!   elsewhere.
//! * Before damage is removed, a copy of it and the note that something is missing are on disk.
//! * A repair that a crash interrupted is finished by the next repair.
//!
//! Memory: about 100 bytes for each key of the partition that is being read.

mod data_files;
mod examination;
mod ledger;
mod quarantine;
mod repair;
mod report;
mod rewrite;
mod root;
mod versions;
mod zero_filling_file;

pub use report::{Damage, Effect, FINDINGS_KEPT, Finding, PartitionReport};
pub use root::{StoreKind, StoreRoot, StoreRootConfig};
