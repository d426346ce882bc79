//! The range of the values of a chart, for which its y axis is made.

use super::scale::Scale;
use super::series::Series;
use super::unit::Unit;

/// The factor above which the span of the values gets a logarithmic axis.
const LINEAR_SPAN_MAX: f64 = 30.0;

/// The range of the y values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::report) struct Range {
    kind: RangeKind,
    /// The least value above 0.
    min: Option<f64>,
    max: Option<f64>,
}

/// The kind of y axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::report) enum RangeKind {
    /// A linear axis from 0.
    #[default]
    Linear,
    /// A linear axis from 0, or a logarithmic one if the values are far apart.
    Latency,
}

impl Range {
    /// The range of all values of these lines.
    pub(in crate::report) fn of<'a>(kind: RangeKind, series: impl IntoIterator<Item = &'a Series>) -> Self {
        let mut range = Self { kind, min: None, max: None };
        for y in series.into_iter().flat_map(|series| &series.points).filter_map(|(_, y)| *y) {
            range.max = Some(range.max.map_or(y, |max| max.max(y)));
            if y > 0.0 {
                range.min = Some(range.min.map_or(y, |min| min.min(y)));
            }
        }
        range
    }

    /// Whether the lines have no value at all.
    pub(super) fn is_empty(&self) -> bool {
        self.max.is_none()
    }

    /// An axis that contains all values.
    pub(super) fn scale(self, unit: Unit, ticks_max: usize) -> Scale {
        match (self.kind, self.min, self.max) {
            (RangeKind::Latency, Some(min), Some(max)) if max / min > LINEAR_SPAN_MAX => {
                Scale::logarithmic(unit, min, max)
            }
            (_, _, max) => Scale::linear(unit, max.unwrap_or_default(), ticks_max, true),
        }
    }
}
