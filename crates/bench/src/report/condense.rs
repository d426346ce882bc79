//! Reduces many windows to fewer ones.

use crate::stats::{QueueDelay, Run, Summary, Window};

/// Merges neighbouring windows, so that at most `count` are left.
///
/// Counts, means, minima and maxima are exact. Percentiles cannot be derived from percentiles, so
/// the mean of the windows' percentiles is used, weighted by their units.
pub(super) fn condensed(windows: &[Window], count: usize) -> Vec<Window> {
    let each = windows.len().div_ceil(count.max(1)).max(1);
    windows.chunks(each).map(merged).collect()
}

/// Merges a short last window into the one before it, because the rate of a few operations says
/// nothing.
pub(super) fn without_remnant(windows: &[Window]) -> Vec<Window> {
    match windows {
        [others @ .., before, last] if last.window_s < before.window_s / 2.0 => {
            let mut windows = others.to_vec();
            windows.push(merged(&[before.clone(), last.clone()]));
            windows
        }
        _ => windows.to_vec(),
    }
}

/// The whole run as one window, and whether its totals are exact or were merged from the windows.
pub(super) fn totals(run: &Run) -> (Window, bool) {
    match &run.totals {
        Some(totals) => (totals.clone(), true),
        None => (merged(&run.windows), false),
    }
}

/// Merges windows into one.
pub(super) fn merged(windows: &[Window]) -> Window {
    let operations = windows.iter().map(|window| window.operations.len()).max().unwrap_or_default();
    Window {
        elapsed_s: windows.last().map(|window| window.elapsed_s).unwrap_or_default(),
        window_s: windows.iter().map(|window| window.window_s).sum(),
        operations: (0..operations)
            .map(|at| merged_operation(windows.iter().filter_map(|window| window.operations.get(at))))
            .collect(),
        sent_bytes: windows.iter().map(|window| window.sent_bytes).sum(),
    }
}

fn merged_operation<'a>(parts: impl Iterator<Item = &'a Summary> + Clone) -> Summary {
    let successful = parts.clone().filter(|part| part.units > 0);
    let units: u64 = successful.clone().map(|part| part.units).sum();
    let weighted = |value: fn(&Summary) -> f64| {
        let sum: f64 = successful.clone().map(|part| value(part) * part.units as f64).sum();
        if units > 0 { sum / units as f64 } else { 0.0 }
    };
    let weighted_us = |value: fn(&Summary) -> f64| weighted(value).round() as u64;
    Summary {
        units,
        min_us: successful.clone().map(|part| part.min_us).min().unwrap_or_default(),
        mean_us: weighted(|part| part.mean_us),
        median_us: weighted_us(|part| part.median_us as f64),
        p95_us: weighted_us(|part| part.p95_us as f64),
        p99_us: weighted_us(|part| part.p99_us as f64),
        p999_us: weighted_us(|part| part.p999_us as f64),
        max_us: successful.clone().map(|part| part.max_us).max().unwrap_or_default(),
        errors: parts.clone().map(|part| part.errors).sum(),
        queue: parts.filter_map(|part| part.queue).reduce(|one, other| QueueDelay {
            p99_us: one.p99_us.max(other.p99_us),
            max_us: one.max_us.max(other.max_us),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(elapsed_s: f64, units: u64, us: u64, errors: u64) -> Window {
        let latency = Summary {
            units,
            min_us: us,
            mean_us: us as f64,
            median_us: us,
            p95_us: us,
            p99_us: us,
            p999_us: us,
            max_us: us,
            errors,
            queue: (errors > 0).then_some(QueueDelay { p99_us: us, max_us: us }),
        };
        let operation = if units > 0 { latency } else { Summary { errors, ..Summary::default() } };
        Window { elapsed_s, window_s: 10.0, operations: vec![operation], sent_bytes: units * 100 }
    }

    #[test]
    fn neighbours_are_weighted() {
        let windows = [window(10.0, 30, 100, 1), window(20.0, 10, 500, 0), window(30.0, 0, 0, 4)];
        let all = merged(&windows);
        assert_eq!((all.elapsed_s, all.window_s, all.sent_bytes), (30.0, 30.0, 4000));
        let operation = all.operations[0];
        assert_eq!((operation.units, operation.errors), (40, 5));
        assert_eq!((operation.min_us, operation.mean_us, operation.p99_us, operation.max_us), (100, 200.0, 200, 500));
        assert_eq!(operation.queue, Some(QueueDelay { p99_us: 100, max_us: 100 }));
        assert_eq!(condensed(&windows, 2).len(), 2);
        assert_eq!(condensed(&windows, 2)[1], windows[2]);
        assert_eq!(condensed(&windows, 3), windows);
        assert_eq!(condensed(&[], 3), []);
    }

    #[test]
    fn a_short_last_window_is_not_drawn_alone() {
        let mut windows = vec![window(10.0, 30, 100, 0), window(20.0, 30, 100, 0), window(20.003, 2, 100, 0)];
        assert_eq!(without_remnant(&windows), windows, "as long as the others");
        windows[2].window_s = 0.003;
        let joined = without_remnant(&windows);
        assert_eq!(joined[..1], windows[..1]);
        assert_eq!((joined.len(), joined[1].elapsed_s, joined[1].units()), (2, 20.003, 32));
        assert_eq!(without_remnant(&windows[2..]), windows[2..]);
    }

    #[test]
    fn a_run_without_totals_gets_some() {
        let mut run = Run::new("x", vec!["get".into()]);
        run.windows = vec![window(10.0, 30, 100, 1)];
        assert_eq!(totals(&run), (run.windows[0].clone(), false));
        run.totals = Some(window(10.0, 31, 100, 1));
        assert_eq!(totals(&run), (window(10.0, 31, 100, 1), true));
    }
}
