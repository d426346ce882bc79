//! What an import did.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Faults that are kept with their place; more are only counted.
pub const FAULTS_KEPT: usize = 1_000;

/// A part of the source that was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultLine {
    /// Which file.
    pub file: String,
    /// Where in it, in bytes.
    pub offset: u64,
    /// Why, and which key if that is known.
    pub reason: String,
}

/// What an import did, over all of its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Whether everything was read.
    pub complete: bool,
    /// Partition directories that were read to the end.
    pub partitions_done: u64,
    /// Partition directories that there are.
    pub partitions: u64,
    /// Current values that were read: one for each replica of a key.
    pub copies: u64,
    /// Of these, those whose key was not there.
    pub keys_new: u64,
    /// Of these, those that brought news to a key.
    pub copies_merged: u64,
    /// Of these, those whose key had seen everything.
    pub copies_known: u64,
    /// Of these, those that are tombstones: they keep deleted keys deleted.
    pub tombstones: u64,
    /// Of these, those with a bucket type that this node does not have, by type.
    pub skipped_by_type: BTreeMap<String, u64>,
    /// Parts that could not be read, or not be taken in.
    pub faults: u64,
    /// The first of them.
    pub first_faults: Vec<FaultLine>,
}

impl Report {
    pub(super) fn fault(&mut self, file: String, offset: u64, reason: String) {
        self.faults += 1;
        if self.first_faults.len() < FAULTS_KEPT {
            self.first_faults.push(FaultLine { file, offset, reason });
        }
    }

    pub(super) fn skip(&mut self, bucket_type: &[u8]) {
        *self.skipped_by_type.entry(bucket_type.escape_ascii().to_string()).or_default() += 1;
    }

    /// Whether a part of the source that was read is not in the node.
    pub fn left_something_out(&self) -> bool {
        self.faults > 0 || !self.skipped_by_type.is_empty()
    }

    /// For a person.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{} {} of {} partition directories",
            match (self.complete, self.left_something_out()) {
                (true, false) => "Imported",
                (true, true) => "Imported, but not all of",
                (false, _) => "Interrupted after",
            },
            self.partitions_done,
            self.partitions
        );
        let _ = writeln!(out, "  copies read:          {}", self.copies);
        let _ = writeln!(out, "  keys that were new:   {}", self.keys_new);
        let _ = writeln!(out, "  copies merged:        {}", self.copies_merged);
        let _ = writeln!(out, "  copies known already: {}", self.copies_known);
        let _ = write!(out, "  tombstones:           {}", self.tombstones);
        for (bucket_type, count) in &self.skipped_by_type {
            let _ = write!(
                out,
                "\nNot taken in: {count} copies of bucket type {bucket_type}, which this node does not have; create and \
                 activate it, or name it in a file (--types FILE), and run the import again with --restart"
            );
        }
        if self.faults > 0 {
            let _ = write!(out, "\nNot readable: {} places", self.faults);
        }
        for fault in &self.first_faults {
            let _ = write!(out, "\n  {} at byte {}: {}", fault.file, fault.offset, fault.reason);
        }
        if self.faults > self.first_faults.len() as u64 {
            let _ = write!(out, "\n  … and {} more", self.faults - self.first_faults.len() as u64);
        }
        if !self.complete {
            out.push_str("\nThe same command goes on from here.");
        }
        out
    }
}
