//! Writes the report of a finished run to its directory.

use crate::stats::Run;
use std::fs;
use std::path::Path;

use super::chosen_charts::{Section, sections};
use super::graphics::png;
use super::picture::picture;
use super::plotted_windows::XAxis;
use super::{ReportError, run_page};

/// Writes `run.json`, `report.html`, `summary.png` (over time) and `summary_by_volume.png` to
/// `dir`. The volume is the bytes of values that were sent, or the number of operations if none of
/// them sends values.
pub fn write(dir: &Path, run: &Run) -> Result<(), ReportError> {
    // `run.json` comes first, because it cannot be recreated from the other files.
    run.save(dir)?;
    let (by_time, by_volume) = (sections(run, XAxis::Time), sections(run, XAxis::Volume));
    let path = dir.join("report.html");
    fs::write(&path, run_page::page(run, &by_time, &by_volume)).map_err(ReportError::io(&path))?;
    let picture_of = |name: &str, how: &str, sections: &[Section]| {
        png::write(&dir.join(name), &picture(&format!("{}{how}", run.title()), sections))
    };
    picture_of("summary.png", "", &by_time)?;
    picture_of("summary_by_volume.png", " by volume", &by_volume)
}
