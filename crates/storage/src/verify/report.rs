//! What was found.

use bytes::Bytes;
use std::path::PathBuf;

/// Findings of a partition that are kept with their place; more are only counted.
pub const FINDINGS_KEPT: usize = 1_000;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The header of a data file: without it no record of the file is believed.
    Header,
    /// Bytes of a data file that are no record.
    Record,
    /// The body of a record; its key and head are whole.
    Body,
    /// A data file that the ledger points at, or that left its hint, is not there, or another one.
    MissingFile,
    /// A data file is shorter than it was, by the inventory of its store.
    ShortFile,
    /// The store of a partition is not there, or another one, or an older copy, by the inventory
    /// that the node keeps.
    Store,
    /// A copy of the inventory.
    Inventory,
    /// A hint file.
    Hint,
    /// A hint file that is whole, and says something else than its data file.
    HintDisagrees,
    /// The commit file of a merge.
    Commit,
    /// The file that says who the store is.
    Identity,
    /// The note of what is missing.
    LostNote,
    /// The note of how far a ledger has to have seen the journal.
    Covered,
    /// A ledger that has not seen what was removed from the journal because it had seen it.
    LedgerBehind,
    /// A file of a ledger.
    Ledger,
    /// A ledger whose entry for a key is not what the journal has.
    LedgerDisagrees,
    /// A ledger whose index entries are not those of its keys.
    TermsDisagree,
}

impl Damage {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Header => "the header of the data file is damaged",
            Self::Record => "not a record: key, head or their checksum are damaged",
            Self::Body => "the value does not match its checksum",
            Self::MissingFile => {
                "the data file is missing, or not the one that the inventory, its ledger or hint knows"
            }
            Self::ShortFile => "the data file is shorter than it was",
            Self::Store => "the store is missing, or another one, or older than the one that the node has used",
            Self::Inventory => "the inventory of the store is damaged",
            Self::Hint => "the hint file is damaged",
            Self::HintDisagrees => "the hint file does not say what is in its data file",
            Self::Commit => "the commit file of a merge is damaged",
            Self::Identity => "the file that says who the store is is damaged",
            Self::LostNote => "the note of what is missing is damaged",
            Self::Covered => "the note of how far the ledger must have come is damaged",
            Self::LedgerBehind => "the ledger is missing, or older than its journal was cut for",
            Self::Ledger => "the file of the ledger is damaged",
            Self::LedgerDisagrees => "the ledger does not say what the journal has",
            Self::TermsDisagree => "the index entries are not those of the objects",
        }
    }

    /// In one word, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Record => "record",
            Self::Body => "body",
            Self::MissingFile => "missing_file",
            Self::ShortFile => "short_file",
            Self::Store => "store",
            Self::Inventory => "inventory",
            Self::Hint => "hint",
            Self::HintDisagrees => "hint_disagrees",
            Self::Commit => "commit",
            Self::Identity => "identity",
            Self::LostNote => "lost_note",
            Self::Covered => "covered",
            Self::LedgerBehind => "ledger_behind",
            Self::Ledger => "ledger",
            Self::LedgerDisagrees => "ledger_disagrees",
            Self::TermsDisagree => "terms_disagree",
        }
    }
}

/// What a reader sees of it today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it is superseded, or made anew at the next start.
    Nothing,
    /// Reads of the key fail, and so do writes: the version is in the way.
    Fails,
    /// What lay there is not found, or an older version in its place.
    NotFound,
    /// Something older is answered.
    Stale,
    /// Index queries and ordered listings may be wrong.
    Queries,
    /// The partition does not open, or will not once more of it is read at a start.
    DoesNotOpen,
}

impl Effect {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "readers see nothing of it",
            Self::Fails => "reads and writes of the key fail",
            Self::NotFound => "what lay there is not found, or an older version of it",
            Self::Stale => "an older version is answered, or one that was deleted",
            Self::Queries => "index queries and ordered listings may be wrong",
            Self::DoesNotOpen => "the partition may not open",
        }
    }

    /// In one word, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Fails => "fails",
            Self::NotFound => "not_found",
            Self::Stale => "stale",
            Self::Queries => "queries",
            Self::DoesNotOpen => "does_not_open",
        }
    }
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The partition, 0 … ring_size−1.
    pub partition: u32,
    /// Which file, or directory.
    pub file: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// How much of it, in bytes.
    pub length: u64,
    /// What is wrong.
    pub damage: Damage,
    /// The storage key, where it can be told.
    pub key: Option<Bytes>,
    /// What a reader sees of it today.
    pub effect: Effect,
}

/// What the examination of a partition came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionReport {
    /// The partition.
    pub partition: u32,
    /// Whether everything was read.
    pub complete: bool,
    /// Bytes read.
    pub bytes: u64,
    /// Records of data files that are whole.
    pub records: u64,
    /// Keys with a current version that can be read.
    pub keys: u64,
    /// Damaged places.
    pub damaged: u64,
    /// The first of them.
    pub findings: Vec<Finding>,
    /// Losses that the store knows of from before.
    pub noted_losses: u64,
    /// Bytes that a crash left half written: no damage, the next start ignores them.
    pub torn_bytes: u64,
}

impl PartitionReport {
    pub(super) fn add(&mut self, finding: Finding) {
        self.damaged += 1;
        if self.findings.len() < FINDINGS_KEPT {
            self.findings.push(finding);
        }
    }
}
