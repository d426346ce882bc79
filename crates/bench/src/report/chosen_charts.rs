//! Chooses the charts for a run (docs/riak/basho-bench.md §7).

use crate::resources::ResourceSample;
use crate::stats::{Run, Summary, Window};

use super::charts::{Chart, Range, RangeKind, Series, Unit};
use super::graphics::ColorRole;
use super::metric::{self, Metric};
use super::plotted_windows::{POINTS_MAX, PlottedWindows, XAxis};

/// A group of charts with a common title.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) charts: Vec<Chart>,
}

/// Latency metrics that share a chart.
#[derive(Clone, Copy)]
struct Group {
    /// The title of a section.
    title: &'static str,
    /// The title of a chart.
    short: &'static str,
    metrics: &'static [Metric],
}

const LATENCY: [Group; 4] = [
    Group {
        title: "Mean, median and 95th percentile of latency",
        short: "mean, median, 95th",
        metrics: &[metric::MEAN, metric::MEDIAN, metric::P95],
    },
    Group { title: "99th percentile of latency", short: "99th percentile", metrics: &[metric::P99] },
    Group { title: "99.9th percentile of latency", short: "99.9th percentile", metrics: &[metric::P999] },
    Group { title: "Maximum latency", short: "maximum", metrics: &[metric::MAX] },
];

/// All charts of a run.
pub(super) fn sections(run: &Run, x_axis: XAxis) -> Vec<Section> {
    let plotted = PlottedWindows::new(run, x_axis);
    let mut sections = vec![Section { title: "Throughput", charts: vec![throughput(&plotted)] }];
    sections.extend(latency(run, &plotted));
    sections.extend(queueing(run, &plotted));
    sections.extend(errors(run, &plotted));
    sections.extend(resources(run, &plotted));
    sections
}

fn chart(plotted: &PlottedWindows, title: impl Into<String>, y: Unit, kind: RangeKind, series: Vec<Series>) -> Chart {
    Chart { title: title.into(), x: plotted.axis.clone(), y, range: Range::of(kind, &series), series }
}

fn throughput(plotted: &PlottedWindows) -> Chart {
    let mut series = vec![plotted.series("ok", ColorRole::Ok, |window| Some(window.per_second(window.units())))];
    if plotted.windows.iter().any(|window| window.errors() > 0) {
        series.push(plotted.series("failed", ColorRole::Error, |window| Some(window.per_second(window.errors()))));
    }
    chart(plotted, "All operations", Unit::OperationsPerSecond, RangeKind::Linear, series)
}

/// The indices and names of the operations for which `something` holds in any window.
fn drawn<'a>(
    run: &'a Run,
    plotted: &'a PlottedWindows,
    something: impl Fn(&Summary) -> bool + 'a,
) -> impl Iterator<Item = (usize, &'a str)> {
    let has_any = move |at: usize| plotted.windows.iter().any(|window| operation(window, at).is_some_and(&something));
    (0..run.operations.len()).filter(move |at| has_any(*at)).map(|at| (at, run.operation_name(at)))
}

fn operation(window: &Window, at: usize) -> Option<&Summary> {
    window.operations.get(at)
}

fn latency(run: &Run, plotted: &PlottedWindows) -> Vec<Section> {
    let operations: Vec<(usize, &str)> = drawn(run, plotted, |operation| operation.units > 0).collect();
    match operations[..] {
        [] => Vec::new(),
        // A run with a single operation has its latency charts side by side.
        [(at, label)] => {
            let chart = |group| latency_chart(plotted, &group, at, format!("{label}: {}", group.short));
            vec![Section { title: "Latency", charts: LATENCY.map(chart).into() }]
        }
        [..] => LATENCY.map(|group| latency_section(plotted, &group, &operations)).into(),
    }
}

/// The charts of one group for all operations.
fn latency_section(plotted: &PlottedWindows, group: &Group, operations: &[(usize, &str)]) -> Section {
    let chart = |(at, label): &(usize, &str)| latency_chart(plotted, group, *at, (*label).to_owned());
    let mut charts: Vec<Chart> = operations.iter().map(chart).collect();
    share_range(&mut charts, RangeKind::Latency);
    Section { title: group.title, charts }
}

fn latency_chart(plotted: &PlottedWindows, group: &Group, at: usize, title: String) -> Chart {
    let line = |(place, metric): (usize, &Metric)| {
        // A single line needs no name, because the heading says what it is.
        let name = if group.metrics.len() > 1 { metric.name } else { "" };
        plotted.series(name, ColorRole::Line(place), |window| metric.ms(operation(window, at)?))
    };
    let series = group.metrics.iter().enumerate().map(line).collect();
    chart(plotted, title, Unit::Milliseconds, RangeKind::Latency, series)
}

/// Gives charts a common y axis, so that they can be compared side by side.
pub(super) fn share_range(charts: &mut [Chart], kind: RangeKind) {
    let range = Range::of(kind, charts.iter().flat_map(|chart| &chart.series));
    charts.iter_mut().for_each(|chart| chart.range = range);
}

fn queueing(run: &Run, plotted: &PlottedWindows) -> Option<Section> {
    let mut charts: Vec<Chart> = drawn(run, plotted, |operation| operation.queue.is_some())
        .map(|(at, label)| {
            let queue = |window: &Window| operation(window, at).and_then(|operation| operation.queue);
            let series = vec![
                plotted.series("99th", ColorRole::Line(0), |window| Some(queue(window)?.p99_us as f64 / 1000.0)),
                plotted.series("maximum", ColorRole::Line(1), |window| Some(queue(window)?.max_us as f64 / 1000.0)),
            ];
            chart(plotted, label, Unit::Milliseconds, RangeKind::Latency, series)
        })
        .collect();
    share_range(&mut charts, RangeKind::Latency);
    (!charts.is_empty()).then_some(Section { title: "How late operations began", charts })
}

fn errors(run: &Run, plotted: &PlottedWindows) -> Option<Section> {
    let series: Vec<Series> = drawn(run, plotted, |operation| operation.errors > 0)
        .enumerate()
        .map(|(place, (at, label))| {
            let rate = |window: &Window| operation(window, at).map(|operation| window.per_second(operation.errors));
            plotted.series(label, ColorRole::Line(place), rate)
        })
        .collect();
    let chart = chart(plotted, "Failed operations", Unit::OperationsPerSecond, RangeKind::Linear, series);
    (!chart.series.is_empty()).then_some(Section { title: "Errors", charts: vec![chart] })
}

fn resources(run: &Run, plotted: &PlottedWindows) -> Option<Section> {
    let stride = run.resources.len().div_ceil(POINTS_MAX).max(1);
    let samples: Vec<&ResourceSample> = run.resources.iter().step_by(stride).collect();
    let now = |name: &str, place: usize, value: fn(&ResourceSample) -> Option<f64>| {
        let points = samples.iter().map(|sample| (plotted.place(sample.elapsed_s), value(sample))).collect();
        Series { name: name.to_owned(), role: ColorRole::Line(place), points }
    };
    let rate = |name: &str, place: usize, value: fn(&ResourceSample) -> Option<f64>| {
        let points = samples.windows(2).filter_map(|pair| match pair {
            [before, after] => Some((plotted.place(after.elapsed_s), per_second(before, after, value))),
            _ => None,
        });
        Series { name: name.to_owned(), role: ColorRole::Line(place), points: points.collect() }
    };
    let charts = [
        ("Processor time", Unit::Cores, vec![rate("busy", 0, |sample| sample.cpu_s)]),
        ("Memory", Unit::Bytes, vec![now("resident", 0, |sample| Some(sample.rss_bytes? as f64))]),
        (
            "Disk traffic",
            Unit::BytesPerSecond,
            vec![
                rate("read", 0, |sample| Some(sample.read_bytes? as f64)),
                rate("written", 1, |sample| Some(sample.written_bytes? as f64)),
            ],
        ),
        ("Disk space", Unit::Bytes, vec![now("data directory", 0, |sample| Some(sample.disk_bytes? as f64))]),
    ];
    let charts: Vec<Chart> = charts
        .into_iter()
        .filter(|(_, _, series)| series.iter().flat_map(|series| &series.points).any(|(_, y)| y.is_some()))
        .map(|(title, unit, series)| chart(plotted, title, unit, RangeKind::Linear, series))
        .collect();
    (!charts.is_empty()).then_some(Section { title: "What the server used", charts })
}

/// The growth rate of a counter. `None` if the counter shrank, because the process was restarted
/// and began at 0 again.
fn per_second(
    before: &ResourceSample,
    after: &ResourceSample,
    value: fn(&ResourceSample) -> Option<f64>,
) -> Option<f64> {
    let (grown, seconds) = (value(after)? - value(before)?, after.elapsed_s - before.elapsed_s);
    (grown >= 0.0 && seconds > 0.0).then(|| grown / seconds)
}
