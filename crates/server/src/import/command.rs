//! The command `ombak import bitcask DIR`: opens the stopped node, imports, and shows the progress.

use super::report::Report;
use super::run::{Import, Progress};
use super::types_file::create_types;
use crate::config::{Effective, Settings};
use crate::node::lock::DataDirLock;
use crate::node::{has_metadata, join, open_engine, open_files};
use crate::offline::{interrupt_flag, progress_bar};
use ombak_kv::{DeleteMode, Kv};
use ombak_riak_files::bitcask::partition_dirs;
use std::path::PathBuf;

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data root of Riak's bitcask, or the directory of one partition.
    pub source: PathBuf,
    /// The file with bucket types to create first.
    pub types: Option<PathBuf>,
    /// Whether to start from the beginning instead of where an earlier run stopped.
    pub restart: bool,
}

/// Imports into the stopped node of this configuration. After Ctrl-C, the same command continues
/// where the import stopped. The error is one line for the operator.
pub fn bitcask(options: &Options, effective: &Effective) -> Result<Report, String> {
    let settings = Settings::new(effective).map_err(|problems| join(&problems))?;
    if settings.backend.keeps_nothing() {
        return Err("storage_backend = memory keeps nothing: import into a node with storage_backend = bitcask".into());
    }
    // The source is checked before anything is created, so a directory that is not Riak's causes no
    // change.
    partition_dirs(&options.source).map_err(|e| e.to_string())?;
    let data_dir = settings.data_dir.clone();
    let _lock = DataDirLock::take(&data_dir).map_err(|e| e.to_string())?;
    if has_metadata(&data_dir) {
        return Err(format!(
            "the node in {} has been part of a cluster, whose bucket types an import cannot use: import into a new node \
             before it gets a listener.peer, or write the objects through a running node",
            data_dir.display()
        ));
    }
    open_files::raise_limit();
    // Tombstones are kept during the import. Until the last replica has been imported, a tombstone
    // may be all that keeps a key deleted. The node reaps them after its next start.
    let kv = open_engine(&Settings { delete_mode: DeleteMode::Keep, ..settings }, false)?;
    let outcome = import(options, &data_dir, &kv);
    kv.close();
    outcome
}

fn import(options: &Options, data_dir: &std::path::Path, kv: &Kv) -> Result<Report, String> {
    if let Some(types) = &options.types {
        create_types(types, kv.buckets())?;
    }
    let interrupted = interrupt_flag()?;
    let bar = progress_bar(0);
    let mut observe = |progress: &Progress| {
        bar.set_length(progress.bytes);
        bar.set_position(progress.bytes_done);
        bar.set_message(format!("{} copies", progress.copies));
    };
    let outcome = Import::begin(kv, data_dir, &options.source, options.restart, &interrupted, &mut observe)
        .and_then(Import::run)
        .map_err(|e| e.to_string());
    bar.finish_and_clear();
    outcome
}
