//! The log-structured merge tree under a ledger, and its files on disk.
//!
//! This module alone knows that the library `lsm-tree` implements the tree. [`Tree`] uses the
//! library. [`TreeFiles`] reads the library's files without opening the tree. It relies on formats
//! and on functions that the library does not promise to keep, so `Cargo.toml` pins the version,
//! and a test below fails when the version changes.

mod files;
mod format;
mod limits;
mod open_tree;

pub(crate) use files::{TreeDamage, TreeFiles};
pub(super) use limits::TreeLimits;
pub(crate) use limits::TreeShared;
pub(super) use open_tree::KEY_BYTES_MAX;
pub(super) use open_tree::LedgerFiles;
pub(crate) use open_tree::{Change, Tree, TreeView};

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// The versions whose files and internals `files` and `format` were written for and compared
    /// with.
    const WRITTEN_FOR: [(&str, &str); 2] = [("lsm-tree", "3.1.10"), ("sfa", "1.0.0")];

    const WHAT_TO_DO: &str = "ledger/tree reads the private formats of this library. Compare the new version's \
                              list of tables, blocks, archive trailer, checksums, `Table::recover` and \
                              `table::Scanner` with `tree/format.rs` and `tree/files.rs`; open a ledger that the old \
                              version wrote; then change WRITTEN_FOR";

    #[test]
    fn the_library_has_the_version_whose_files_this_module_reads() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        let lock = std::fs::read_to_string(&path).unwrap();
        for (name, version) in WRITTEN_FOR {
            let found: Vec<&str> = lock
                .split("[[package]]")
                .filter(|package| package.lines().any(|line| line == format!("name = \"{name}\"")))
                .filter_map(|package| package.lines().find_map(|line| line.strip_prefix("version = ")))
                .map(|version| version.trim_matches('"'))
                .collect();
            assert_eq!(found, [version], "Cargo.lock has another {name}: {WHAT_TO_DO}");
        }
    }
}
