//! The results of an examination.

use bytes::Bytes;
use std::path::PathBuf;

/// The most findings of a partition that are kept with their place. Further ones are only counted.
pub const FINDINGS_KEPT: usize = 1_000;

/// What is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The header of a data file. Without it, no record of the file can be verified.
    Header,
    /// Bytes of a data file that are not a record.
    Record,
    /// The body of a record; its key and head are intact.
    Body,
    /// A data file that the inventory, the ledger or a hint file names is missing, or another file
    /// has its name.
    MissingFile,
    /// A data file is shorter than the inventory of its store says.
    ShortFile,
    /// The store of a partition is missing, is another store, or is an older copy, according to the
    /// inventory that the node keeps.
    Store,
    /// A small file beside the data files is missing, by the inventory of the store.
    MissingSmallFile,
    /// A copy of the inventory.
    Inventory,
    /// A hint file.
    Hint,
    /// A hint file that is intact but disagrees with its data file.
    HintDisagrees,
    /// The commit file of a merge.
    Commit,
    /// The file with the identity of the store.
    Identity,
    /// The note of lost ranges.
    LostNote,
    /// The note of how far a ledger must have seen the journal.
    IndexMustHaveSeen,
    /// A ledger that has not seen journal files that were removed because a ledger had seen them.
    LedgerBehind,
    /// A file of a ledger.
    Ledger,
    /// A ledger whose entry for a key disagrees with the journal.
    LedgerDisagrees,
    /// A ledger whose index entries are not those of its keys.
    TermsDisagree,
}

impl Damage {
    /// A description for people.
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
            Self::MissingSmallFile => "a file with what the store knows of itself is missing",
            Self::Inventory => "the inventory of the store is damaged",
            Self::Hint => "the hint file is damaged",
            Self::HintDisagrees => "the hint file does not say what is in its data file",
            Self::Commit => "the commit file of a merge is damaged",
            Self::Identity => "the identity file of the store is damaged",
            Self::LostNote => "the note of what is missing is damaged",
            Self::IndexMustHaveSeen => "the note of how far the ledger must have seen the journal is damaged",
            Self::LedgerBehind => "the ledger is missing, or older than the removal of journal files allows",
            Self::Ledger => "the file of the ledger is damaged",
            Self::LedgerDisagrees => "the ledger does not say what the journal has",
            Self::TermsDisagree => "the index entries are not those of the objects",
        }
    }

    /// One word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Record => "record",
            Self::Body => "body",
            Self::MissingFile => "missing_file",
            Self::ShortFile => "short_file",
            Self::Store => "store",
            Self::MissingSmallFile => "missing_small_file",
            Self::Inventory => "inventory",
            Self::Hint => "hint",
            Self::HintDisagrees => "hint_disagrees",
            Self::Commit => "commit",
            Self::Identity => "identity",
            Self::LostNote => "lost_note",
            Self::IndexMustHaveSeen => "covered",
            Self::LedgerBehind => "ledger_behind",
            Self::Ledger => "ledger",
            Self::LedgerDisagrees => "ledger_disagrees",
            Self::TermsDisagree => "terms_disagree",
        }
    }
}

/// How readers are affected today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Not at all: the data is superseded, or it is rebuilt at the next start.
    Nothing,
    /// Reads and writes of the key fail.
    Fails,
    /// The lost version is not found, or an older version is found in its place.
    NotFound,
    /// An older version is visible.
    Stale,
    /// Index queries and ordered listings may be wrong.
    Queries,
    /// The partition does not open, or will fail to open when a start reads more of it.
    DoesNotOpen,
}

impl Effect {
    /// A description for people.
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

    /// One word for programs.
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
    /// The file or directory.
    pub file: PathBuf,
    /// The offset of the damage in bytes.
    pub offset: u64,
    /// The length of the damage in bytes.
    pub length: u64,
    /// What is damaged.
    pub damage: Damage,
    /// The storage key, if it is known.
    pub key: Option<Bytes>,
    /// How readers are affected today.
    pub effect: Effect,
}

/// The result of examining a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionReport {
    /// The partition.
    pub partition: u32,
    /// Whether everything was read.
    pub complete: bool,
    /// Bytes read.
    pub bytes: u64,
    /// Number of intact records in data files.
    pub records: u64,
    /// Number of keys with a current version that can be read.
    pub keys: u64,
    /// Number of damaged places.
    pub damaged: u64,
    /// The first findings.
    pub findings: Vec<Finding>,
    /// Losses that the store had recorded before.
    pub noted_losses: u64,
    /// Bytes of torn writes that a crash left. They are not damage; the next start ignores them.
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
