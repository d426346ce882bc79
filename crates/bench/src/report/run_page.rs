//! The HTML page of one run.

use crate::stats::{Origin, Run, Summary, Window};

use super::chosen_charts::Section;
use super::condense::totals;
use super::metric::{self, Metric};
use super::page::Page;
use super::plotted_windows::{POINTS_MAX, XAxis};
use super::text::{bytes, digits3, duration, grouped};

const METRICS: [Metric; 7] =
    [metric::MIN, metric::MEAN, metric::MEDIAN, metric::P95, metric::P99, metric::P999, metric::MAX];

/// The whole page, with charts over time and charts over volume.
pub(super) fn page(run: &Run, by_time: &[Section], by_volume: &[Section]) -> String {
    let (totals, exact) = totals(run);
    let mut page = Page::new(&run.title());
    page.paragraph("lead", &lead(&totals));
    if run.title() != run.name {
        page.paragraph("small", &run.name);
    }
    origin_table(&mut page, run);
    page.notes(&run.notes);
    page.heading("Totals");
    totals_table(&mut page, run, &totals);
    if !exact {
        page.paragraph("small", "Percentiles of the whole run are means of the windows', which is all that is known.");
    }
    resource_lines(&mut page, run, totals.units());
    charts(&mut page, run, by_time, by_volume);
    error_table(&mut page, run);
    page.heading("Configuration");
    page.verbatim(&run.config);
    page.finish()
}

fn lead(totals: &Window) -> String {
    format!(
        "{}, {} operations, {} ops/s, {} failed",
        duration(totals.elapsed_s),
        grouped(totals.units()),
        digits3(totals.per_second(totals.units())),
        grouped(totals.errors())
    )
}

/// A table with the origin of the run, if it is known.
fn origin_table(page: &mut Page, run: &Run) {
    let Some(Origin { config_files, host, program, server }) = &run.origin else { return };
    let files = config_files.join(", ");
    let mut rows = vec![("configuration", &files), ("load from", host), ("load generator", program)];
    rows.extend(server.iter().map(|server| ("server", server)));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(what, value)| vec![what.to_owned(), value.clone()]).collect();
    page.table("facts", &["".to_owned(), "this run".to_owned()], &rows);
}

fn totals_table(page: &mut Page, run: &Run, totals: &Window) {
    let queued = totals.operations.iter().any(|operation| operation.queue.is_some());
    let mut head: Vec<String> = ["", "done", "ops/s", "failed"].map(String::from).into();
    head.extend(METRICS.map(|metric| format!("{} ms", metric.name)));
    if queued {
        head.extend(["late 99th ms".to_owned(), "late max ms".to_owned()]);
    }
    let rows: Vec<Vec<String>> = totals
        .operations
        .iter()
        .enumerate()
        .map(|(place, operation)| {
            let mut row = vec![run.operation_name(place).to_owned()];
            row.extend(totals_row(totals, operation));
            if queued {
                let late = operation.queue.map(|queue| [queue.p99_us, queue.max_us]);
                row.extend(
                    late.map_or(["–".to_owned(), "–".to_owned()], |us| us.map(|us| digits3(us as f64 / 1000.0))),
                );
            }
            row
        })
        .collect();
    page.table("", &head, &rows);
}

fn totals_row(totals: &Window, operation: &Summary) -> Vec<String> {
    let rate = digits3(totals.per_second(operation.units));
    let mut row = vec![grouped(operation.units), rate, grouped(operation.errors)];
    row.extend(METRICS.map(|metric| metric.ms(operation).map_or_else(|| "–".to_owned(), digits3)));
    row
}

/// What the server used between the first sample and the last.
fn resource_lines(page: &mut Page, run: &Run, units: u64) {
    let (Some(first), Some(last)) = (run.resources.first(), run.resources.last()) else { return };
    let seconds = last.elapsed_s - first.elapsed_s;
    let mut rows = Vec::new();
    if let (Some(before), Some(after)) = (first.cpu_s, last.cpu_s)
        && seconds > 0.0
    {
        let used = after - before;
        let each = if units > 0 { digits3(used * 1e6 / units as f64) } else { "–".to_owned() };
        rows.push((
            "processor time",
            format!("{} s: {} cores, {each} µs for each operation", digits3(used), digits3(used / seconds)),
        ));
    }
    if let Some(most) = run.resources.iter().filter_map(|sample| sample.rss_bytes).max() {
        rows.push(("memory", format!("at most {}", bytes(most as f64))));
    }
    let grown = |before: Option<u64>, after: Option<u64>| Some(after?.checked_sub(before?)? as f64);
    if let Some(read) = grown(first.read_bytes, last.read_bytes) {
        rows.push(("read from disk", bytes(read)));
    }
    if let Some(written) = grown(first.written_bytes, last.written_bytes) {
        rows.push(("written to disk", bytes(written)));
    }
    if let (Some(before), Some(after)) = (first.disk_bytes, last.disk_bytes) {
        rows.push(("disk space", format!("{} before, {} after", bytes(before as f64), bytes(after as f64))));
    }
    if !rows.is_empty() {
        page.heading("Resources of the server");
        let rows: Vec<Vec<String>> = rows.into_iter().map(|(what, value)| vec![what.to_owned(), value]).collect();
        page.table("facts", &[String::new(), format!("in {}", duration(seconds))], &rows);
    }
}

fn error_table(page: &mut Page, run: &Run) {
    if !run.errors.is_empty() {
        page.heading("What failed");
        let rows: Vec<Vec<String>> = run
            .errors
            .iter()
            .map(|error| {
                vec![[error.operation.as_str(), &error.reason].join(" ").trim().to_owned(), grouped(error.count)]
            })
            .collect();
        page.table("wrap", &[String::new(), "times".to_owned()], &rows);
    }
}

/// Both sets of charts, with a switch that shows one of them and needs no script.
fn charts(page: &mut Page, run: &Run, by_time: &[Section], by_volume: &[Section]) {
    page.raw(
        "<input class=\"across\" type=\"radio\" name=\"across\" id=\"time\" checked=\"checked\"/>\
         <input class=\"across\" type=\"radio\" name=\"across\" id=\"volume\"/>\n\
         <label class=\"across\" for=\"time\">over time</label><label class=\"across\" for=\"volume\">over volume</label>\n",
    );
    for (x_axis, sections) in [(XAxis::Time, by_time), (XAxis::Volume, by_volume)] {
        page.raw(match x_axis {
            XAxis::Time => "<div class=\"by-time\">\n",
            XAxis::Volume => "<div class=\"by-volume\">\n",
        });
        page.sections(sections);
        page.raw("</div>\n");
    }
    let (windows, each) = (run.windows.len(), run.windows.len().div_ceil(POINTS_MAX));
    if each > 1 {
        let text = format!(
            "{} windows were drawn {each} at a time: percentiles are means of theirs, maxima are exact.",
            grouped(windows as u64)
        );
        page.paragraph("small", &text);
    }
}
