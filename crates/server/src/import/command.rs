//! `ombak import bitcask DIR`: opens the stopped node, imports, shows how far it is.

use super::report::Report;
use super::run::{Import, Progress};
use super::types_file::create_types;
use crate::config::{Effective, Settings};
use crate::node::lock::DataDirLock;
use crate::node::{join, open_engine, open_files};
use indicatif::{ProgressBar, ProgressStyle};
use ombak_kv::{DeleteMode, Kv};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that a second Ctrl-C ends.
const EXIT_INTERRUPTED: i32 = 130;

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data root of Riak's bitcask, or the directory of one partition.
    pub source: PathBuf,
    /// Bucket types to create first.
    pub types: Option<PathBuf>,
    /// Start from the beginning instead of where an earlier run stopped.
    pub restart: bool,
}

/// Imports into the node of this configuration, which must not run. Ctrl-C ends it at a place from where the same
/// command goes on. The error is one line for the operator.
pub fn bitcask(options: &Options, effective: &Effective) -> Result<Report, String> {
    let settings = Settings::new(effective).map_err(|problems| join(&problems))?;
    if settings.backend.keeps_nothing() {
        return Err("storage_backend = memory keeps nothing: import into a node with storage_backend = bitcask".into());
    }
    let data_dir = settings.data_dir.clone();
    let _lock = DataDirLock::take(&data_dir).map_err(|e| e.to_string())?;
    open_files::raise_limit();
    // Until the last replica is in, a tombstone may be all that keeps a key deleted. The node itself reaps them later.
    let kv = open_engine(&Settings { delete_mode: DeleteMode::Keep, ..settings })?;
    let outcome = import(options, &data_dir, &kv);
    kv.close();
    outcome
}

fn import(options: &Options, data_dir: &std::path::Path, kv: &Kv) -> Result<Report, String> {
    if let Some(types) = &options.types {
        create_types(types, kv.buckets())?;
    }
    let interrupted = interrupt_flag()?;
    let bar = progress_bar();
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

/// Shown only where standard error is a terminal.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{bar:30} {bytes}/{total_bytes} {msg}, {bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[expect(clippy::disallowed_methods, reason = "whoever asks twice will not wait; all that counts is durable already")]
fn end_at_once() -> ! {
    std::process::exit(EXIT_INTERRUPTED)
}

/// Turns true with the first Ctrl-C or SIGTERM; a second one ends the program at once.
fn interrupt_flag() -> Result<Arc<AtomicBool>, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let refused = |e: std::io::Error| format!("the operating system refuses signal handlers: {e}");
    let flag = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
    let (mut interrupt, mut terminate) = {
        let _guard = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(refused)?, signal(SignalKind::terminate()).map_err(refused)?)
    };
    let turned = Arc::clone(&flag);
    let wait = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if turned.swap(true, Ordering::Relaxed) {
                    end_at_once();
                }
            }
        });
    };
    std::thread::Builder::new().name("ombak-signals".into()).spawn(wait).map_err(refused)?;
    Ok(flag)
}
