//! Writes the files of basho_bench in its own format (docs/riak/basho-bench.md §6).

use crate::stats::{ErrorTotal, Summary, Window};
use crate::term::Term;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::ReportError;

pub(super) const SUMMARY_FILE: &str = "summary.csv";
pub(super) const LATENCIES_SUFFIX: &str = "_latencies.csv";
pub(super) const ERRORS_FILE: &str = "errors.csv";

const SUMMARY_HEADER: &str = "elapsed, window, total, successful, failed\n";
const LATENCIES_HEADER: &str = "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n";
const ERRORS_HEADER: &str = "\"error\",\"count\"\n";

/// The files `summary.csv`, `<label>_latencies.csv` and, at the end, `errors.csv`. Rows have been
/// written to the files when [`CsvFiles::window`] returns.
#[derive(Debug)]
pub struct CsvFiles {
    summary: CsvFile,
    /// One file for each operation.
    latencies: Vec<CsvFile>,
    errors: CsvFile,
}

#[derive(Debug)]
struct CsvFile {
    path: PathBuf,
    file: File,
}

impl CsvFiles {
    /// Creates the files in `dir` with their headers. Existing files are overwritten.
    pub fn create(dir: &Path, labels: &[String]) -> Result<Self, ReportError> {
        let latencies = file_names(labels)
            .into_iter()
            .map(|name| CsvFile::create(dir.join(name + LATENCIES_SUFFIX), LATENCIES_HEADER))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            summary: CsvFile::create(dir.join(SUMMARY_FILE), SUMMARY_HEADER)?,
            latencies,
            errors: CsvFile::create(dir.join(ERRORS_FILE), ERRORS_HEADER)?,
        })
    }

    /// Writes one row to each file.
    pub fn window(&mut self, window: &Window) -> Result<(), ReportError> {
        let (successful, failed) = (window.units(), window.errors());
        let (elapsed, length) = (Seconds(window.elapsed_s), Seconds(window.window_s));
        self.summary.row(&format!("{elapsed}, {length}, {}, {successful}, {failed}\n", successful + failed))?;
        for (file, summary) in self.latencies.iter_mut().zip(&window.operations) {
            file.row(&latencies_row(elapsed, length, summary))?;
        }
        Ok(())
    }

    /// Writes how often each operation failed for each reason in the whole run, one row for each
    /// pair of an operation's term and a reason (docs/riak/basho-bench.md §6.4).
    pub fn finish(mut self, errors: &[ErrorTotal]) -> Result<(), ReportError> {
        for error in errors {
            let term = format!("{{{},{}}}", operation(&error.operation), atom(&error.reason)).replace('"', "\"\"");
            self.errors.row(&format!("\"{term}\",\"{}\"\n", error.count))?;
        }
        Ok(())
    }
}

impl CsvFile {
    fn create(path: PathBuf, header: &str) -> Result<Self, ReportError> {
        let file = File::create(&path).map_err(ReportError::io(&path))?;
        let mut file = Self { path, file };
        file.row(header)?;
        Ok(file)
    }

    fn row(&mut self, row: &str) -> Result<(), ReportError> {
        self.file.write_all(row.as_bytes()).map_err(ReportError::io(&self.path))
    }
}

fn latencies_row(elapsed: Seconds, length: Seconds, summary: &Summary) -> String {
    let Summary { units, min_us, mean_us, median_us, p95_us, p99_us, p999_us, max_us, errors, .. } = summary;
    if *units == 0 {
        return format!("{elapsed}, {length}, 0, 0, 0, 0, 0, 0, 0, 0, {errors}\n");
    }
    format!(
        "{elapsed}, {length}, {units}, {min_us}, {mean_us:.1}, {median_us}, {p95_us}, {p99_us}, {p999_us}, {max_us}, {errors}\n"
    )
}

/// Seconds in the form in which Erlang writes a float: always with a decimal point, and as short as
/// possible without loss. They are rounded to whole microseconds.
#[derive(Clone, Copy)]
struct Seconds(f64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", (self.0 * 1e6).round() / 1e6)
    }
}

/// The file names for labels, without the suffix. Labels that would have the same name are
/// numbered.
pub(super) fn file_names(labels: &[String]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut names = Vec::with_capacity(labels.len());
    for label in labels {
        let name = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        let mut free = name.clone();
        let mut number = 1;
        while !taken.insert(free.clone()) {
            number += 1;
            free = format!("{name}-{number}");
        }
        names.push(free);
    }
    names
}

/// An operation as Erlang writes its term. If only a label is known and it is not a valid term, it
/// becomes an atom.
fn operation(name: &str) -> String {
    Term::parse(name).map_or_else(|_| atom(name), |term| compact(&term))
}

/// A term without spaces between its parts.
fn compact(term: &Term) -> String {
    let joined = |parts: &[Term]| parts.iter().map(compact).collect::<Vec<_>>().join(",");
    match term {
        Term::Tuple(parts) => format!("{{{}}}", joined(parts)),
        Term::List(parts) => format!("[{}]", joined(parts)),
        term => term.to_string(),
    }
}

/// Text as an Erlang atom.
fn atom(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@');
    if plain {
        return text.to_owned();
    }
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\x{{{:x}}}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Tally;
    use std::fs;

    fn labels(labels: &[&str]) -> Vec<String> {
        labels.iter().map(|label| (*label).to_owned()).collect()
    }

    #[test]
    fn the_files_are_basho_benchs() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = CsvFiles::create(dir.path(), &labels(&["alwaysget-pb", "team-write"])).unwrap();
        let mut tally = Tally::new(2);
        for latency_us in [100, 200, 350] {
            tally.done(0, 1, latency_us);
        }
        tally.done(0, 5, 1000);
        tally.failed(0, &"timeout".into());
        tally.failed(1, &"HTTP 503: \"busy\"".into());
        tally.failed(1, &"HTTP 503: \"busy\"".into());
        files.window(&Window::new(10.000_123_4, 10.0, &tally)).unwrap();

        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let summary = "elapsed, window, total, successful, failed\n10.000123, 10.0, 11, 8, 3\n";
        assert_eq!(read("summary.csv"), summary, "a row is in the file at once");
        assert_eq!(
            read("alwaysget-pb_latencies.csv"),
            "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n\
             10.000123, 10.0, 8, 100, 412.5, 200, 1000, 1000, 1000, 1000, 1\n"
        );
        assert_eq!(
            read("team-write_latencies.csv"),
            "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n\
             10.000123, 10.0, 0, 0, 0, 0, 0, 0, 0, 0, 2\n"
        );

        let mut run = crate::stats::Run::new("test", labels(&["alwaysget-pb", "team-write"]));
        run.terms = labels(&["alwaysget_pb", "{team, write}"]);
        run.set_errors(tally.errors());
        files.finish(&run.errors).unwrap();
        assert_eq!(
            read("errors.csv"),
            "\"error\",\"count\"\n\
             \"{alwaysget_pb,timeout}\",\"1\"\n\
             \"{{team,write},'HTTP 503: \"\"busy\"\"'}\",\"2\"\n"
        );
    }

    #[test]
    fn what_has_only_a_label_is_an_atom() {
        let names = ["get", "put-unique", "{search, {\"a b\", 1}}", "<<\"x\">>", "fast reads"].map(operation);
        assert_eq!(names, ["get", "'put-unique'", "{search,{\"a b\",1}}", "<<\"x\">>", "'fast reads'"]);
    }

    #[test]
    fn labels_become_file_names() {
        let names = file_names(&labels(&["team-player-addition", "put unique", "put/unique", "get"]));
        assert_eq!(names, ["team-player-addition", "put-unique", "put-unique-2", "get"]);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = CsvFiles::create(Path::new("/nowhere/at/all"), &labels(&["get"])).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/at/all/get_latencies.csv: "), "{error}");
    }
}
