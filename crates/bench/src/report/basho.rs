//! Reads result directories of basho_bench, which have only CSV files (docs/riak/basho-bench.md
//! §6).

use crate::stats::{ErrorTotal, Run, Summary, Window};
use std::fs;
use std::io;
use std::path::Path;

use super::ReportError;
use super::csv::{ERRORS_FILE, LATENCIES_SUFFIX, SUMMARY_FILE};

/// Reads the windows of a run. Labels are taken from the names of the files. Totals of the whole
/// run are not known.
pub(super) fn load(dir: &Path, name: &str) -> Result<Run, ReportError> {
    let labels = labels(dir)?;
    let mut run = Run::new(name, labels.clone());
    for [elapsed_s, window_s] in rows(&dir.join(SUMMARY_FILE))? {
        let operations = vec![Summary::default(); labels.len()];
        run.windows.push(Window { elapsed_s, window_s, operations, sent_bytes: 0 });
    }
    for (at, label) in labels.iter().enumerate() {
        for row in rows(&dir.join(format!("{label}{LATENCIES_SUFFIX}")))? {
            let (elapsed_s, summary) = summary(row);
            // If the run was cut short, a file may have fewer rows. Rows of the same window have
            // the same time.
            let window = run.windows.iter_mut().find(|window| window.elapsed_s == elapsed_s);
            if let Some(place) = window.and_then(|window| window.operations.get_mut(at)) {
                *place = summary;
            }
        }
    }
    run.errors = errors(&dir.join(ERRORS_FILE))?;
    Ok(run)
}

/// The operations that have files, sorted by name.
fn labels(dir: &Path) -> Result<Vec<String>, ReportError> {
    let mut labels = Vec::new();
    for entry in fs::read_dir(dir).map_err(ReportError::io(dir))? {
        let name = entry.map_err(ReportError::io(dir))?.file_name();
        if let Some(label) = name.to_str().and_then(|name| name.strip_suffix(LATENCIES_SUFFIX)) {
            labels.push(label.to_owned());
        }
    }
    labels.sort_unstable();
    Ok(labels)
}

/// The first `N` numbers of each row after the header.
fn rows<const N: usize>(path: &Path) -> Result<Vec<[f64; N]>, ReportError> {
    let text = fs::read_to_string(path).map_err(ReportError::io(path))?;
    let mut rows = Vec::new();
    for (at, row) in text.lines().enumerate().skip(1).filter(|(_, row)| !row.trim().is_empty()) {
        let numbers: Option<Vec<f64>> = row.split(',').take(N).map(|number| number.trim().parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| <[f64; N]>::try_from(numbers).ok());
        rows.push(numbers.ok_or_else(|| ReportError::Csv {
            path: path.to_owned(),
            line: at + 1,
            what: format!("'{row}' does not begin with {N} numbers with commas between them"),
        })?);
    }
    Ok(rows)
}

fn summary(row: [f64; 11]) -> (f64, Summary) {
    let [elapsed_s, _, units, min, mean_us, median, p95, p99, p999, max, errors] = row;
    let summary = Summary {
        units: units as u64,
        min_us: min as u64,
        mean_us,
        median_us: median as u64,
        p95_us: p95 as u64,
        p99_us: p99 as u64,
        p999_us: p999 as u64,
        max_us: max as u64,
        errors: errors as u64,
        queue: None,
    };
    (elapsed_s, summary)
}

/// Reads rows such as `"{get,timeout}","3"`. If the run was cut short, the file is missing.
fn errors(path: &Path) -> Result<Vec<ErrorTotal>, ReportError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(ReportError::io(path)(error)),
    };
    let error = |row: &str| {
        let (term, count) = row.trim().strip_prefix('"')?.strip_suffix('"')?.rsplit_once("\",\"")?;
        Some(ErrorTotal { operation: String::new(), reason: term.replace("\"\"", "\""), count: count.parse().ok()? })
    };
    let read = |(at, row): (usize, &str)| {
        error(row).ok_or_else(|| ReportError::Csv {
            path: path.to_owned(),
            line: at + 1,
            what: format!("'{row}' is not an error and a count, each in quotes"),
        })
    };
    text.lines().enumerate().skip(1).filter(|(_, row)| !row.trim().is_empty()).map(read).collect()
}
