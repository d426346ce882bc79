//! Log messages: text for people on standard error, one JSON object a line in a file that rotates.

mod rotate;

use crate::config::LogSettings;
use rotate::RotatingFile;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Sends all messages of this process where the settings say. Once per process.
pub fn start(settings: &LogSettings) -> Result<(), String> {
    let file = open(settings)
        .map_err(|e| format!("cannot write the log {}: {e}; set logger.file elsewhere", settings.file.display()))?;
    let to_file =
        fmt::layer().json().flatten_event(true).with_writer(Mutex::new(file)).with_filter(filter(settings.level));
    let to_people = fmt::layer()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .with_filter(filter(settings.level));
    tracing_subscriber::registry().with(to_file).with(to_people).try_init().map_err(|e| e.to_string())
}

/// The tree library tells how it opens each of its directories: of use to its authors, and two lines a partition.
fn filter(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target("lsm_tree", level.min(LevelFilter::WARN))
}

fn open(settings: &LogSettings) -> io::Result<RotatingFile> {
    if let Some(dir) = settings.file.parent().filter(|d| *d != Path::new("")) {
        std::fs::create_dir_all(dir)?;
    }
    RotatingFile::open(&settings.file, settings.file_bytes_max, settings.files_max)
}
