//! Files, charts and comparisons (spec/basho-bench.md §6, §7).

mod csv;
mod error;

pub use csv::CsvFiles;
pub use error::ReportError;

use crate::stats::Run;
use std::path::{Path, PathBuf};

/// Writes `run.json`, `report.html` and the pictures of a run in `dir`.
pub fn write(dir: &Path, run: &Run) -> Result<(), ReportError> {
    Ok(run.save(dir)?)
}

/// Draws the runs of several directories in `out` and answers a table of their ratios to the first.
pub fn compare(dirs: &[PathBuf], _out: &Path) -> Result<String, ReportError> {
    Err(ReportError::Usage(format!("{} directories cannot be compared yet", dirs.len())))
}
