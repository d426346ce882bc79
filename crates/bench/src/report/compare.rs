//! Compares several runs with the first one.

use crate::stats::{Run, Summary, Window};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::charts::{Axis, Chart, Range, RangeKind, Series, Unit};
use super::chosen_charts::{Section, share_range};
use super::condense::{merged, totals};
use super::csv::{SUMMARY_FILE, file_names};
use super::graphics::{ColorRole, png};
use super::metric::{self, Metric};
use super::page::Page;
use super::picture::picture;
use super::plotted_windows::{PlottedWindows, XAxis};
use super::table::{Better, Row, Table};
use super::text::duration;
use super::{ReportError, basho};

const TITLE: &str = "Runs compared";
/// The metrics in the table.
const METRICS: [Metric; 6] = [metric::MEAN, metric::MEDIAN, metric::P95, metric::P99, metric::P999, metric::MAX];
/// The metrics in the charts, with their titles.
const CHARTS: [(&str, Metric); 2] =
    [("95th percentile of latency", metric::P95), ("99th percentile of latency", metric::P99)];

/// Runs whose lengths differ by more than this factor are hard to compare: caches are warmer in the
/// longer one, and merges come only later.
const LENGTHS_RATIO_MAX: f64 = 1.1;

/// Draws the runs of several directories into `out` (`compare.html`, `compare.png`) and returns a
/// table with their ratios to the first run. A directory is one of ombak-bench (with `run.json`) or
/// one of basho_bench (with CSV files only).
pub fn compare(dirs: &[PathBuf], out: &Path) -> Result<String, ReportError> {
    if dirs.len() < 2 {
        return Err(ReportError::Usage("a comparison needs two directories of results or more".to_owned()));
    }
    let comparison = Comparison::load(dirs)?;
    let (table, notes, sections) = (comparison.table(), comparison.notes(), comparison.sections());

    fs::create_dir_all(out).map_err(ReportError::io(out))?;
    let mut page = Page::new(TITLE);
    page.notes(&notes);
    page.heading("Ratios to the first");
    page.table("", &table.head(), &table.cells());
    page.sections(&sections);
    let path = out.join("compare.html");
    fs::write(&path, page.finish()).map_err(ReportError::io(&path))?;
    png::write(&out.join("compare.png"), &picture(TITLE, &sections))?;

    let notes = notes.into_iter().map(|note| note + "\n").collect::<String>();
    Ok(format!("{}{notes}", table.text()))
}

/// The compared runs, and what they have in common.
struct Comparison {
    runs: Vec<Compared>,
    /// Operations that all runs have.
    shared: Vec<String>,
    /// Operations that only some runs have.
    others: Vec<String>,
    /// Whether the totals of all runs are known, and not only their windows.
    exact: bool,
}

struct Compared {
    name: String,
    run: Run,
    /// The labels of the operations in file names, which is all that basho_bench records.
    labels: Vec<String>,
    totals: Window,
}

impl Compared {
    fn operation<'a>(&self, window: &'a Window, label: &str) -> Option<&'a Summary> {
        window.operations.get(self.labels.iter().position(|mine| mine == label)?)
    }
}

impl Comparison {
    fn load(dirs: &[PathBuf]) -> Result<Self, ReportError> {
        let mut runs = Vec::with_capacity(dirs.len());
        for (dir, name) in dirs.iter().zip(names(dirs)) {
            let run = load(dir, &name)?;
            let labels = file_names(&run.operations);
            runs.push(Compared { name, labels, totals: Window::default(), run });
        }
        let titles: BTreeSet<String> = runs.iter().map(|compared| compared.run.title()).collect();
        for compared in &mut runs {
            let title = compared.run.title();
            // Runs of the same configuration are told apart by the names of their directories.
            compared.name = match titles.len() == dirs.len() {
                true => title,
                false if title == compared.run.name => continue,
                false => format!("{title} {}", compared.name),
            };
        }
        // Percentiles that were computed in different ways must not be compared.
        let exact = runs.iter().all(|compared| totals(&compared.run).1);
        for compared in &mut runs {
            compared.totals = if exact { totals(&compared.run).0 } else { merged(&compared.run.windows) };
        }
        let has = |compared: &Compared, label: &String| compared.labels.contains(label);
        let mut seen = BTreeSet::new();
        let all = runs.iter().flat_map(|compared| &compared.labels).filter(|label| seen.insert((*label).clone()));
        let (shared, others) = all.cloned().partition(|label| runs.iter().all(|compared| has(compared, label)));
        Ok(Self { runs, shared, others, exact })
    }

    /// The name that the first run has for a shared operation.
    fn shown<'a>(&'a self, label: &'a str) -> &'a str {
        let first = self.runs.first().and_then(|first| {
            let place = first.labels.iter().position(|theirs| theirs == label)?;
            Some(first.run.operation_name(place))
        });
        first.unwrap_or(label)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.differences();
        if !self.exact {
            notes.push("Percentiles of whole runs are means of the windows': basho_bench writes no others.".to_owned());
        }
        if !self.others.is_empty() {
            notes.push(format!("Not in all runs, and so not compared: {}.", self.others.join(", ")));
        }
        notes
    }

    /// Warnings of what makes the runs hard to compare.
    fn differences(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let lengths = self.runs.iter().map(|compared| compared.totals.elapsed_s);
        let (shortest, longest) =
            lengths.clone().fold((f64::MAX, 0.0_f64), |(least, most), length| (least.min(length), most.max(length)));
        if longest > shortest * LENGTHS_RATIO_MAX {
            let lengths: Vec<String> = lengths.map(duration).collect();
            warnings.push(format!("Warning: the runs differ in length: {}.", lengths.join(", ")));
        }
        let drivers: Vec<&str> = self.runs.iter().map(|compared| compared.run.driver().unwrap_or("unknown")).collect();
        if drivers.iter().any(|driver| Some(driver) != drivers.first()) {
            warnings.push(format!("Warning: the runs differ in driver and protocol: {}.", drivers.join(", ")));
        }
        warnings
    }

    fn table(&self) -> Table {
        let mut rows = vec![
            Row::of_numbers(
                "ops/s",
                Better::Larger,
                self.runs.iter().map(|run| Some(run.totals.per_second(run.totals.units()))),
            ),
            Row::of_counts("failed", self.runs.iter().map(|run| run.totals.errors())),
        ];
        for label in &self.shared {
            let summary = |compared: &Compared| {
                compared.operation(&compared.totals, label).copied().filter(|operation| operation.units > 0)
            };
            let rate = |compared: &Compared| Some(compared.totals.per_second(summary(compared)?.units));
            rows.push(Row::of_numbers(
                format!("{} ops/s", self.shown(label)),
                Better::Larger,
                self.runs.iter().map(rate),
            ));
            for metric in METRICS {
                let ms = |compared: &Compared| metric.ms(&summary(compared)?);
                let what = format!("{} {} ms", self.shown(label), metric.name);
                rows.push(Row::of_numbers(what, Better::Smaller, self.runs.iter().map(ms)));
            }
        }
        Table { names: self.runs.iter().map(|compared| compared.name.clone()).collect(), rows }
    }

    fn sections(&self) -> Vec<Section> {
        let throughput = self.chart("All operations", Unit::OperationsPerSecond, RangeKind::Linear, |_, window| {
            Some(window.per_second(window.units()))
        });
        let mut sections = vec![Section { title: "Throughput of successful operations", charts: vec![throughput] }];
        for (title, metric) in CHARTS {
            let chart = |label: &String| {
                self.chart(self.shown(label), Unit::Milliseconds, RangeKind::Latency, |compared, window| {
                    metric.ms(compared.operation(window, label)?)
                })
            };
            let mut charts: Vec<Chart> = self.shared.iter().map(chart).collect();
            share_range(&mut charts, RangeKind::Latency);
            if !charts.is_empty() {
                sections.push(Section { title, charts });
            }
        }
        sections
    }

    /// A chart over time with one line for each run.
    fn chart(&self, title: &str, y: Unit, kind: RangeKind, value: impl Fn(&Compared, &Window) -> Option<f64>) -> Chart {
        let mut x = Axis { label: "elapsed", unit: Unit::Seconds, to: 0.0 };
        let mut series: Vec<Series> = Vec::with_capacity(self.runs.len());
        for (place, compared) in self.runs.iter().enumerate() {
            let plotted = PlottedWindows::new(&compared.run, XAxis::Time);
            x.to = x.to.max(plotted.axis.to);
            series.push(plotted.series(&compared.name, ColorRole::Line(place), |window| value(compared, window)));
        }
        Chart { title: title.to_owned(), x, y, range: Range::of(kind, &series), series }
    }
}

fn load(dir: &Path, name: &str) -> Result<Run, ReportError> {
    if dir.join(Run::FILE).exists() {
        return Ok(Run::load(dir)?);
    }
    if dir.join(SUMMARY_FILE).exists() {
        return basho::load(dir, name);
    }
    let what =
        format!("{}: neither {} nor {SUMMARY_FILE} is there: not a directory of results", dir.display(), Run::FILE);
    Err(ReportError::Usage(what))
}

/// The names of the runs: the last component of their directories, or the whole paths if two would
/// have the same name.
fn names(dirs: &[PathBuf]) -> Vec<String> {
    let short = |dir: &PathBuf| {
        // `current` is a symbolic link to a run's directory.
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned()
    };
    let names: Vec<String> = dirs.iter().map(short).collect();
    let alike = names.iter().collect::<BTreeSet<_>>().len() < names.len();
    if alike { dirs.iter().map(|dir| dir.display().to_string()).collect() } else { names }
}
