//! The status line during a run.

use crate::stats::Tally;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A progress bar with the remaining time, the rate, the 99th percentile of latency, and errors. It
/// is shown only on a terminal.
pub(super) struct Live {
    bar: ProgressBar,
    errors: u64,
}

impl Live {
    /// Creates the bar for a run of the planned `duration`.
    pub(super) fn new(duration: Option<Duration>) -> Self {
        let bar = match duration {
            Some(duration) => ProgressBar::new(duration.as_millis().try_into().unwrap_or(u64::MAX)),
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr());
        let shape = match duration {
            Some(_) => "{elapsed_precise} {wide_bar:.cyan/blue} {msg}",
            None => "{elapsed_precise} {spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        Self { bar, errors: 0 }
    }

    /// Shows the counts of the last `seconds`.
    pub(super) fn update(&mut self, elapsed: Duration, seconds: f64, tally: &Tally) {
        let summaries = tally.summaries();
        let units: u64 = summaries.iter().map(|s| s.units).sum();
        self.errors += summaries.iter().map(|s| s.errors).sum::<u64>();
        let p99_us = summaries.iter().map(|s| s.p99_us).max().unwrap_or(0);
        self.bar.set_position(elapsed.as_millis().try_into().unwrap_or(u64::MAX));
        let left = self.bar.length().map(|ms| Duration::from_millis(ms).saturating_sub(elapsed).as_secs());
        let left = left.map(|secs| format!("{}:{:02} left, ", secs / 60, secs % 60)).unwrap_or_default();
        let rate = units as f64 / seconds.max(f64::MIN_POSITIVE);
        let p99_ms = p99_us as f64 / 1000.0;
        self.bar.set_message(format!("{left}{rate:.0} ops/s, p99 {p99_ms:.2} ms, {} errors", self.errors));
    }

    /// Prints a line above the bar.
    pub(super) fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
