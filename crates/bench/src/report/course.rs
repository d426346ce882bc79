//! The windows of a run along an x axis: over time, or over the accumulated volume.

use crate::stats::{Run, Window};

use super::chart::{Axis, Series};
use super::condense::{condensed, without_remnant};
use super::ink::Ink;
use super::scale::Unit;

/// The highest number of points on a line. More points could not be distinguished.
pub(super) const POINTS_MAX: usize = 240;

/// The quantity on the x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Across {
    Time,
    /// The bytes of values that were sent, or the number of operations if none of them sends
    /// values.
    Volume,
}

/// The windows of a run, each with its position on the x axis.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) axis: Axis,
    pub(super) windows: Vec<Window>,
    x: Vec<f64>,
}

impl Course {
    pub(super) fn new(run: &Run, across: Across) -> Self {
        let windows = condensed(&without_remnant(&run.windows), POINTS_MAX);
        let of_bytes = windows.iter().any(|window| window.sent_bytes > 0);
        let mut volume = 0;
        let x: Vec<f64> = windows
            .iter()
            .map(|window| match across {
                Across::Time => window.elapsed_s,
                Across::Volume => {
                    volume += if of_bytes { window.sent_bytes } else { window.units() };
                    volume as f64
                }
            })
            .collect();
        let (label, unit) = match across {
            Across::Time => ("elapsed", Unit::Seconds),
            Across::Volume if of_bytes => ("values sent", Unit::Bytes),
            Across::Volume => ("done", Unit::Operations),
        };
        let axis = Axis { label, unit, to: x.last().copied().unwrap_or_default() };
        Self { axis, windows, x }
    }

    /// A line with one point for each window.
    pub(super) fn series(&self, name: impl Into<String>, ink: Ink, y: impl Fn(&Window) -> Option<f64>) -> Series {
        let points = self.x.iter().zip(&self.windows).map(|(x, window)| (*x, y(window))).collect();
        Series { name: name.into(), ink, points }
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
        let x =
            |course: &Course| course.series("", Ink::Ok, |_| None).points.iter().map(|(x, _)| *x).collect::<Vec<_>>();
        let bytes = Course::new(&run(8), Across::Volume);
        assert_eq!((x(&bytes), bytes.axis.unit, bytes.axis.to), (vec![800.0, 3200.0], Unit::Bytes, 3200.0));
        let operations = Course::new(&run(0), Across::Volume);
        assert_eq!((x(&operations), operations.axis.unit), (vec![100.0, 400.0], Unit::Operations));
        let time = Course::new(&run(8), Across::Time);
        assert_eq!((x(&time), time.axis.unit), (vec![10.0, 20.0], Unit::Seconds));
    }

    #[test]
    fn moments_lie_between_windows() {
        let course = Course::new(&run(0), Across::Volume);
        assert_eq!(
            [0.0, 5.0, 10.0, 15.0, 20.0, 25.0].map(|moment| course.place(moment)),
            [0.0, 50.0, 100.0, 250.0, 400.0, 400.0]
        );
    }
}
