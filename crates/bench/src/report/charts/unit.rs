//! The quantities that axes show, and their units.

use crate::report::text;

/// The quantity that an axis shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Unit {
    Seconds,
    Operations,
    OperationsPerSecond,
    Milliseconds,
    Bytes,
    BytesPerSecond,
    /// The number of busy processors.
    Cores,
}

impl Unit {
    /// The divisor that gives values few digits, and the name of the unit with that divisor.
    pub(super) fn shown(self, max: f64) -> (f64, String) {
        match self {
            Self::Seconds if max <= 180.0 => (1.0, "s".to_owned()),
            Self::Seconds if max <= 10_800.0 => (60.0, "min".to_owned()),
            Self::Seconds => (3600.0, "h".to_owned()),
            Self::Operations => (1.0, "operations".to_owned()),
            Self::OperationsPerSecond => (1.0, "ops/s".to_owned()),
            Self::Milliseconds => (1.0, "ms".to_owned()),
            Self::Cores => (1.0, "cores".to_owned()),
            Self::Bytes => {
                let (divisor, name) = text::byte_unit(max);
                (divisor, name.to_owned())
            }
            Self::BytesPerSecond => {
                let (divisor, name) = text::byte_unit(max);
                (divisor, format!("{name}/s"))
            }
        }
    }
}
