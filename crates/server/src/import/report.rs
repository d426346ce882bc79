//! The report of an import.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The number of faults that are kept with their place. Further faults are only counted.
pub const FAULTS_KEPT: usize = 1_000;

/// A part of the source that was not imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultLine {
    /// The path of the file.
    pub file: String,
    /// The position in the file, in bytes.
    pub offset: u64,
    /// Why it was not imported, and its key if that is known.
    pub reason: String,
}

/// What an import did, over all of its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Whether the whole source was read.
    pub complete: bool,
    /// The number of partition directories that were read to their end.
    pub partitions_done: u64,
    /// The number of partition directories in the source.
    pub partitions: u64,
    /// The number of current values that were read. Each replica of a key counts.
    pub copies: u64,
    /// How many of `copies` had a key that the node did not have yet.
    pub keys_new: u64,
    /// How many of `copies` added a version to a key that the node already had.
    pub copies_merged: u64,
    /// How many of `copies` brought nothing new, because the node had already seen all of their
    /// events.
    pub copies_known: u64,
    /// How many of `copies` are tombstones, which keep deleted keys deleted.
    pub tombstones: u64,
    /// How many of `copies` have a bucket type that this node does not have, by type.
    pub skipped_by_type: BTreeMap<String, u64>,
    /// The number of places that could not be read or imported.
    pub faults: u64,
    /// The first faults, at most [`FAULTS_KEPT`].
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

    /// Whether a part of the source was not imported.
    pub fn left_something_out(&self) -> bool {
        self.faults > 0 || !self.skipped_by_type.is_empty()
    }

    /// The report as text for people.
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
        let _ = writeln!(out, "  copies known before:  {}", self.copies_known);
        let _ = write!(out, "  tombstones:           {}", self.tombstones);
        for (bucket_type, count) in &self.skipped_by_type {
            let _ = write!(
                out,
                "\nNot imported: {count} copies of bucket type {bucket_type}, which this node does not have; create and \
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
            out.push_str("\nThe same command continues from here.");
        }
        out
    }
}
