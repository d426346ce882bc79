//! Charts: lines over time or volume, with two axes, a title and a legend.
//!
//! What it is: a [`Chart`] holds what is to be shown and can be drawn in any size. `plot` arranges
//! the lines and the axes, `scale` chooses the ticks, and `legend` names the lines.
//!
//! What it is not: it does not choose what is shown, and it does not know whether a drawing becomes
//! SVG or PNG.
//!
//! Invariants:
//! * A logarithmic axis is labelled as such.
//! * A line has a gap where no value is known.
//! * A title or name that does not fit is cut, and an ellipsis shows it. There is room for browsers
//!   whose fonts are somewhat wider than the program's own.

mod axis;
mod chart;
mod legend;
mod plot;
mod range;
mod scale;
mod series;
mod sizes;
mod unit;

pub(super) use axis::Axis;
pub(super) use chart::Chart;
pub(super) use range::{Range, RangeKind};
pub(super) use series::Series;
pub(super) use unit::Unit;
