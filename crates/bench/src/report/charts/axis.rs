//! The x axis of a chart.

use super::unit::Unit;

/// The x axis.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Axis {
    pub(in crate::report) label: &'static str,
    pub(in crate::report) unit: Unit,
    /// The end of the axis, which begins at 0.
    pub(in crate::report) to: f64,
}
