//! Tests of the statistics against exact values, and of the saved run.

use super::*;
use crate::drivers::Reason;
use crate::resources::ResourceSample;
use std::fs;

/// The value at or below which this share of the sorted values lies.
fn exact_quantile(sorted: &[u64], quantile: f64) -> u64 {
    sorted[((quantile * sorted.len() as f64).ceil() as usize).max(1) - 1]
}

fn assert_close(found: u64, exact: u64) {
    assert!(found.abs_diff(exact) as f64 <= exact as f64 / 1000.0, "{found} instead of {exact}");
}

#[test]
fn statistics_agree_with_the_sorted_values() {
    // The values are spread over six decades and unordered.
    let mut values: Vec<u64> =
        (0..50_000u64).map(|n| 10f64.powf((n * 7919 % 50_000) as f64 / 50_000.0 * 6.0) as u64).collect();
    let (mut left, mut right) = (Tally::new(1), Tally::new(1));
    for (at, value) in values.iter().enumerate() {
        if at % 3 == 0 { left.done(0, 2, *value) } else { right.done(0, 2, *value) }
    }
    left.add(&right);
    let summary = left.summaries()[0];
    values.sort_unstable();

    assert_eq!(summary.units, 100_000);
    assert_eq!(summary.min_us, values[0]);
    assert_eq!(summary.max_us, values[49_999]);
    let mean = values.iter().sum::<u64>() as f64 / 50_000.0;
    assert!((summary.mean_us - mean).abs() < 1e-6, "{} instead of {mean}", summary.mean_us);
    assert_close(summary.median_us, exact_quantile(&values, 0.5));
    assert_close(summary.p95_us, exact_quantile(&values, 0.95));
    assert_close(summary.p99_us, exact_quantile(&values, 0.99));
    assert_close(summary.p999_us, exact_quantile(&values, 0.999));
    assert_eq!((summary.errors, summary.queue), (0, None));
}

#[test]
fn more_than_an_hour_keeps_its_greatest() {
    let mut tally = Tally::new(1);
    tally.done(0, 1, 5_000_000_000);
    let summary = tally.summaries()[0];
    assert_eq!(summary.max_us, 5_000_000_000);
    assert!(summary.p99_us >= 3_600_000_000, "{summary:?}");
}

#[test]
fn failures_have_no_latency() {
    let mut tally = Tally::new(2);
    tally.done(0, 1, 10);
    tally.failed(0, &"timeout".into());
    tally.failed(1, &"timeout".into());
    let window = Window::new(5.0, 5.0, &tally);
    assert_eq!((window.units(), window.errors()), (1, 2));
    assert_eq!(window.operations[0].max_us, 10);
    assert_eq!(window.operations[1], Summary { errors: 1, ..Summary::default() });
    assert_eq!(window.per_second(window.units()), 0.2);
}

#[test]
fn lateness_is_counted_apart() {
    let mut tally = Tally::new(1);
    for delay_us in 0..100 {
        tally.queued(0, delay_us * 10);
        tally.done(0, 1, 7);
    }
    let summary = tally.summaries()[0];
    assert_eq!(summary.queue, Some(QueueDelay { p99_us: 980, max_us: 990 }));
    assert_eq!(summary.max_us, 7);
}

#[test]
fn reasons_have_a_bound() {
    let mut tally = Tally::new(2);
    let reason = |n: usize| Reason::Owned(format!("answer {n}"));
    for n in 0..REASONS_MAX + 50 {
        tally.failed(1, &reason(n));
    }
    tally.failed(0, &reason(7));
    tally.failed(1, &reason(7));
    assert_eq!(tally.errors().len(), REASONS_MAX + 2, "one more for each operation");
    let count = |operation: usize, reason: &Reason| {
        tally.errors().iter().find(|error| error.operation == operation && error.reason == *reason).map(|e| e.count)
    };
    assert_eq!(count(1, &reason(7)), Some(2));
    assert_eq!(count(1, &OTHER_REASONS), Some(50));
    assert_eq!(count(0, &OTHER_REASONS), Some(1));
    assert_eq!(tally.summaries()[1].errors, REASONS_MAX as u64 + 51);

    let mut total = Tally::new(2);
    total.add(&tally);
    total.add(&tally);
    assert_eq!(total.errors().len(), REASONS_MAX + 2);
    assert_eq!(total.errors().iter().map(|error| error.count).sum::<u64>(), 2 * (REASONS_MAX as u64 + 52));
}

#[test]
fn draining_starts_anew() {
    let mut tally = Tally::new(1);
    let mut total = Tally::new(1);
    tally.done(0, 1, 40);
    tally.queued(0, 4);
    tally.failed(0, &"closed".into());
    tally.sent(1000);
    let mut taken = Tally::new(1);
    tally.drain_into(&mut taken);
    tally.done(0, 1, 60);
    tally.failed(0, &"closed".into());
    tally.sent(10);
    tally.drain_into(&mut total);

    let empty = tally.summaries()[0];
    assert_eq!((empty, tally.errors().len(), tally.sent_bytes()), (Summary::default(), 0, 0));
    assert_eq!(taken.summaries()[0].max_us, 40);
    assert_eq!((total.summaries()[0].min_us, total.sent_bytes()), (60, 10));
    total.add(&taken);
    assert_eq!((total.summaries()[0].min_us, total.summaries()[0].max_us, total.sent_bytes()), (40, 60, 1010));
    assert_eq!(total.errors(), [ErrorCount { operation: 0, reason: "closed".into(), count: 2 }]);
}

#[test]
fn a_run_reads_back() {
    let mut tally = Tally::new(2);
    tally.done(0, 1, 1_234_567);
    tally.queued(0, 89);
    tally.failed(1, &"HTTP 503".into());
    let mut run = Run::new("20260101_120000", vec!["get".into(), "put".into()]);
    run.config = vec!["{mode, max}.".into()];
    run.notes = vec!["\"delete\" left out".into()];
    run.windows = vec![Window::new(1.000_1, 1.000_1, &tally)];
    run.totals = Some(Window::new(1.000_1, 1.000_1, &tally));
    run.resources = vec![ResourceSample { elapsed_s: 1.0, cpu_s: Some(0.25), ..ResourceSample::default() }];
    run.set_errors(tally.errors());
    assert_eq!(run.errors, [ErrorTotal { operation: "put".into(), reason: "HTTP 503".into(), count: 1 }]);

    let dir = tempfile::tempdir().unwrap();
    run.save(dir.path()).unwrap();
    assert_eq!(Run::load(dir.path()).unwrap(), run);
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        fs::write(dir.path().join(Run::FILE), text).unwrap();
        Run::load(dir.path()).unwrap_err().to_string()
    };
    assert!(refused(r#"{"version": 2, "whatever": []}"#).ends_with("version 2; this program reads version 1"));
    assert!(refused("elapsed, window").contains("not a run"));
    assert!(refused(r#"{"version": 1, "name": "x"}"#).contains("missing field"));
}
