//! Maps values to positions on an axis.

use crate::report::text;

use super::unit::Unit;

/// An axis from its first to its last value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
    /// The values with a label, and their labels.
    pub(super) ticks: Vec<(f64, String)>,
    /// The unit of the labels.
    pub(super) unit: String,
}

impl Scale {
    /// A linear axis from 0, either to a tick at or above `max` or exactly to `max`.
    pub(super) fn linear(unit: Unit, max: f64, ticks_max: usize, to_tick: bool) -> Self {
        let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
        let (divisor, name) = unit.shown(max);
        let step = step(max / divisor, ticks_max);
        let count = max / divisor / step;
        // The tolerance prevents an additional tick if the maximum is a tick itself.
        let count = if to_tick { (count - 1e-9).ceil() } else { (count + 1e-9).floor() };
        let ticks = (0..=count as usize).map(|n| n as f64 * step).map(|value| (value * divisor, text::tick(value)));
        let to = if to_tick { count * step * divisor } else { max };
        Self { from: 0.0, to, logarithmic: false, ticks: ticks.collect(), unit: name }
    }

    /// A logarithmic axis from a round number at or below `min` to one at or above `max`. Both must
    /// be above 0.
    pub(super) fn logarithmic(unit: Unit, min: f64, max: f64) -> Self {
        let (first, last) = (min.log10().floor() as i32, max.log10().ceil() as i32);
        let marks = [1.0, 2.0, 5.0];
        let mut marks: Vec<(f64, f64)> = (first..=last)
            .flat_map(|power| marks.into_iter().map(move |mark| (mark, mark * 10f64.powi(power))))
            .collect();
        let start = marks.iter().rposition(|(_, value)| *value <= min * (1.0 + 1e-9)).unwrap_or_default();
        let end = marks.iter().position(|(_, value)| *value >= max * (1.0 - 1e-9)).unwrap_or(marks.len());
        marks.truncate(end.max(start + 1) + 1);
        marks.drain(..start);
        let ends = |mark: Option<&(f64, f64)>, else_value| mark.map_or(else_value, |(_, value)| *value);
        let (from, to) = (ends(marks.first(), min), ends(marks.last(), max));
        // If there are many ticks, only whole powers of ten are kept.
        let powers_only = marks.len() > 7;
        let ticks = marks.into_iter().filter(|(mark, _)| !powers_only || *mark == 1.0);
        let ticks = ticks.map(|(_, value)| (value, text::tick(value))).collect();
        Self { from, to, logarithmic: true, ticks, unit: format!("{}, logarithmic", unit.shown(max).1) }
    }

    /// The position of a value: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.logarithmic {
            true => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        place.clamp(0.0, 1.0)
    }
}

/// The distance of ticks: 1, 2 or 5 times a power of ten, chosen so that there are at most
/// `ticks_max` steps.
fn step(max: f64, ticks_max: usize) -> f64 {
    let least = max / ticks_max.max(1) as f64;
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let scale = Scale::linear(Unit::OperationsPerSecond, 23_400.0, 5, true);
        assert_eq!(written(&scale), ["0", "5,000", "10k", "15k", "20k", "25k"]);
        assert_eq!((scale.place(0.0), scale.place(12_500.0), scale.place(25_000.0)), (0.0, 0.5, 1.0));
        assert_eq!(written(&Scale::linear(Unit::Milliseconds, 0.3, 3, true)), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(written(&Scale::linear(Unit::Milliseconds, 0.0, 2, true)), ["0", "0.5", "1"]);
    }

    #[test]
    fn time_ends_where_the_run_did() {
        let scale = Scale::linear(Unit::Seconds, 510.0, 5, false);
        assert_eq!((written(&scale), scale.unit.as_str()), (vec!["0", "2", "4", "6", "8"], "min"));
        assert_eq!(scale.place(510.0), 1.0);
        let scale = Scale::linear(Unit::Bytes, 3.5e9, 4, false);
        assert_eq!((written(&scale), scale.unit.as_str()), (vec!["0", "1", "2", "3"], "GB"));
    }

    #[test]
    fn logarithmic_ticks_enclose_the_values() {
        let scale = Scale::logarithmic(Unit::Milliseconds, 0.15, 900.0);
        assert_eq!(written(&scale), ["0.1", "1", "10", "100", "1,000"]);
        assert!((scale.place(10.0) - 0.5).abs() < 1e-9, "from 0.1 to 1000: {}", scale.place(10.0));
        assert_eq!(written(&Scale::logarithmic(Unit::Milliseconds, 3.0, 40.0)), ["2", "5", "10", "20", "50"]);
        assert_eq!(written(&Scale::logarithmic(Unit::Milliseconds, 5.0, 5.0)), ["5", "10"]);
        assert_eq!(scale.place(0.0), 0.0, "less than the least is at the beginning");
    }
}
