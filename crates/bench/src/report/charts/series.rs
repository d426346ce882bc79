//! A line of a chart.

use crate::report::graphics::ColorRole;

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Series {
    /// The name in the legend; empty if the title says enough.
    pub(in crate::report) name: String,
    pub(in crate::report) role: ColorRole,
    /// The points, ordered by x. A point without y leaves a gap in the line.
    pub(in crate::report) points: Vec<(f64, Option<f64>)>,
}
