//! The windows of a run along an x axis: over time, or over the accumulated volume.

use crate::stats::{Run, Window};

use super::charts::{Axis, Series, Unit};
use super::condense::{condensed, without_remnant};
use super::graphics::ColorRole;

/// The highest number of points on a line. More points could not be distinguished.
pub(super) const POINTS_MAX: usize = 240;

/// The quantity on the x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XAxis {
    Time,
    /// The bytes of values that were sent, or the number of operations if none of them sends
    /// values.
    Volume,
}

/// The windows of a run, each with its position on the x axis.
#[derive(Debug)]
pub(super) struct PlottedWindows {
    pub(super) axis: Axis,
    pub(super) windows: Vec<Window>,
    x: Vec<f64>,
}

impl PlottedWindows {
    pub(super) fn new(run: &Run, x_axis: XAxis) -> Self {
        let windows = condensed(&without_remnant(&run.windows), POINTS_MAX);
        let of_bytes = windows.iter().any(|window| window.sent_bytes > 0);
        let mut volume = 0;
        let x: Vec<f64> = windows
            .iter()
            .map(|window| match x_axis {
                XAxis::Time => window.elapsed_s,
                XAxis::Volume => {
                    volume += if of_bytes { window.sent_bytes } else { window.units() };
                    volume as f64
                }
            })
            .collect();
        let (label, unit) = match x_axis {
            XAxis::Time => ("elapsed", Unit::Seconds),
            XAxis::Volume if of_bytes => ("values sent", Unit::Bytes),
            XAxis::Volume => ("done", Unit::Operations),
        };
        let axis = Axis { label, unit, to: x.last().copied().unwrap_or_default() };
        Self { axis, windows, x }
    }

    /// A line with one point for each window.
    pub(super) fn series(
        &self,
        name: impl Into<String>,
        role: ColorRole,
        y: impl Fn(&Window) -> Option<f64>,
    ) -> Series {
        let points = self.x.iter().zip(&self.windows).map(|(x, window)| (*x, y(window))).collect();
        Series { name: name.into(), role, points }
    }

    /// The position of a moment on the x axis, interpolated between the windows around it.
    pub(super) fn place(&self, elapsed_s: f64) -> f64 {
        let (mut time_before, mut x_before) = (0.0, 0.0);
        for (window, x) in self.windows.iter().zip(&self.x) {
            if window.elapsed_s >= elapsed_s && window.elapsed_s > time_before {
                let share = (elapsed_s - time_before) / (window.elapsed_s - time_before);
                return x_before + (x - x_before) * share;
            }
            (time_before, x_before) = (window.elapsed_s, *x);
        }
        x_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Summary;

    fn run(sent_bytes: u64) -> Run {
        let mut run = Run::new("x", vec!["get".into()]);
        for (elapsed_s, units) in [(10.0, 100), (20.0, 300)] {
            let operations = vec![Summary { units, ..Summary::default() }];
            run.windows.push(Window { elapsed_s, window_s: 10.0, operations, sent_bytes: sent_bytes * units });
        }
        run
    }

    #[test]
    fn volume_is_bytes_or_else_operations() {
        let x = |plotted: &PlottedWindows| {
            plotted.series("", ColorRole::Ok, |_| None).points.iter().map(|(x, _)| *x).collect::<Vec<_>>()
        };
        let bytes = PlottedWindows::new(&run(8), XAxis::Volume);
        assert_eq!((x(&bytes), bytes.axis.unit, bytes.axis.to), (vec![800.0, 3200.0], Unit::Bytes, 3200.0));
        let operations = PlottedWindows::new(&run(0), XAxis::Volume);
        assert_eq!((x(&operations), operations.axis.unit), (vec![100.0, 400.0], Unit::Operations));
        let time = PlottedWindows::new(&run(8), XAxis::Time);
        assert_eq!((x(&time), time.axis.unit), (vec![10.0, 20.0], Unit::Seconds));
    }

    #[test]
    fn moments_lie_between_windows() {
        let plotted = PlottedWindows::new(&run(0), XAxis::Volume);
        assert_eq!(
            [0.0, 5.0, 10.0, 15.0, 20.0, 25.0].map(|moment| plotted.place(moment)),
            [0.0, 50.0, 100.0, 250.0, 400.0, 400.0]
        );
    }
}
