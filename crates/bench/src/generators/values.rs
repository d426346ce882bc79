//! Value generators as they are configured (docs/riak/basho-bench.md §3).

use super::integers::{Distribution, Integers};
use super::reader::Reader;
use super::words::{bytes, grouped};
use crate::config::ConfigError;
use crate::term::Term;
use ::bytes::Bytes;

/// The setting with the value generator.
pub(super) const SETTING: &str = "value_generator";

/// The longest value that a configuration may ask for.
const VALUE_BYTES_MAX: i128 = 256 << 20;

/// The longest value for generators of which each worker has a buffer of its own.
const PRINTABLE_BYTES_MAX: i128 = 16 << 20;

const FORMS: [&str; 8] = [
    "{fixed_bin, Size}",
    "{fixed_bin, Size, Byte}",
    "{fixed_char, Size}",
    "{exponential_bin, Min, Mean}",
    "{uniform_bin, Min, Max}",
    "{uniform_int, Max}",
    "{uniform_int, Min, Max}",
    "{semi_compressible, Min, Mean, XLMult, XLProb}",
];

/// A configured value generator.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSpec {
    term: Term,
    pub(super) values: Values,
}

/// What a value generator yields.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// Slices of a pool.
    Slices { size: Size, pool: PoolKind },
    /// Values that repeat one byte.
    Repeated { value: Bytes, byte: u8 },
    /// Random printable characters.
    Printable { bytes: usize },
    /// Decimal numbers.
    Integers(Distribution),
}

/// The pool of which values are slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolKind {
    Random,
    SemiCompressible,
}

/// The length of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    Fixed(usize),
    /// `above` plus a number from 1 to `more`, uniformly distributed.
    Uniform {
        above: usize,
        more: u64,
    },
    /// `min` plus an exponentially distributed number. With some probability, both are multiplied.
    Exponential {
        min: usize,
        mean: f64,
        larger: Larger,
    },
}

/// How often and by how much values are larger than usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Larger {
    pub(super) times: f64,
    pub(super) probability: f64,
}

impl Larger {
    const NEVER: Self = Self { times: 1.0, probability: 0.0 };
}

impl ValueSpec {
    /// Parses a `value_generator`.
    pub fn parse(term: &Term) -> Result<Self, ConfigError> {
        Self::read(Reader::new(SETTING), term)
    }

    /// Parses a value generator, which may be inside another generator.
    pub(super) fn read(reader: Reader, term: &Term) -> Result<Self, ConfigError> {
        let values = match term {
            Term::Tuple(parts) => match parts.as_slice() {
                [Term::Atom(name), ..] if name == "function" => {
                    let instead = format!("the value generators are {}", FORMS.join(", "));
                    return Err(reader.erlang_function(parts, &instead));
                }
                [Term::Atom(name), parameters @ ..] => Values::parse(reader, name, parameters)?,
                _ => None,
            },
            _ => None,
        };
        let values = values.ok_or_else(|| reader.unknown("value generator", term, &FORMS))?;
        Ok(Self { term: term.clone(), values })
    }

    /// The term as it was written.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Describes the values in words.
    pub fn describe(&self) -> String {
        match &self.values {
            Values::Slices { size, pool } => {
                let content = match pool {
                    PoolKind::Random => "random bytes",
                    PoolKind::SemiCompressible => "bytes that zlib shrinks by about a third",
                };
                format!("{}, {content}", size.describe())
            }
            Values::Repeated { value, byte } => format!("{}, each of them {byte}", bytes(value.len())),
            Values::Printable { bytes: n } => format!("{}, random printable characters", bytes(*n)),
            Values::Integers(distribution) => distribution.describe(),
        }
    }

    /// The mean length of values; `None` for integers.
    pub fn mean_bytes(&self) -> Option<f64> {
        match &self.values {
            Values::Slices { size, .. } => Some(size.mean()),
            Values::Repeated { value, .. } => Some(value.len() as f64),
            Values::Printable { bytes } => Some(*bytes as f64),
            Values::Integers(_) => None,
        }
    }
}

impl Values {
    fn parse(reader: Reader, name: &str, parameters: &[Term]) -> Result<Option<Self>, ConfigError> {
        let random = |size| Ok(Some(Self::Slices { size, pool: PoolKind::Random }));
        match (name, parameters) {
            ("fixed_bin", [size]) => {
                random(Size::Fixed(byte_count(reader.inside("{fixed_bin, Size}")?, "Size", size)?))
            }
            ("fixed_bin", [size, byte]) => {
                let reader = reader.inside("{fixed_bin, Size, Byte}")?;
                let bytes = byte_count(reader, "Size", size)?;
                let byte = reader.integer("Byte", byte, 0..=255)? as u8;
                Ok(Some(Self::Repeated { value: vec![byte; bytes].into(), byte }))
            }
            ("fixed_char", [size]) => {
                let bytes = reader.inside("{fixed_char, Size}")?.integer("Size", size, 0..=PRINTABLE_BYTES_MAX)?;
                Ok(Some(Self::Printable { bytes: bytes as usize }))
            }
            ("exponential_bin", [min, mean]) => {
                random(exponential(reader.inside("{exponential_bin, Min, Mean}")?, min, mean, Larger::NEVER)?)
            }
            ("uniform_bin", [min, max]) => {
                let reader = reader.inside("{uniform_bin, Min, Max}")?;
                let above = byte_count(reader, "Min", min)?;
                let max = reader.integer("Max", max, above as i128 + 1..=VALUE_BYTES_MAX.max(above as i128 + 1))?;
                random(Size::Uniform { above, more: max as u64 - above as u64 })
            }
            ("semi_compressible", [min, mean, times, probability]) => {
                let reader = reader.inside("{semi_compressible, Min, Mean, XLMult, XLProb}")?;
                let times = reader.positive("XLMult", times)?;
                let larger = Larger { times, probability: reader.probability("XLProb", probability)? };
                let size = exponential(reader, min, mean, larger)?;
                Ok(Some(Self::Slices { size, pool: PoolKind::SemiCompressible }))
            }
            ("uniform_int", [min, max]) => {
                let reader = reader.inside("{uniform_int, Min, Max}")?;
                let min = reader.integer("Min", min, i128::from(i64::MIN)..=i128::from(i64::MAX) - 1)?;
                let largest = i128::from(i64::MAX).min(min + i128::from(i64::MAX));
                let max = reader.integer("Max", max, min + 1..=largest)?;
                let (first, count) = ((min + 1) as i64, (max - min) as u64);
                Ok(Some(Self::Integers(Distribution::Uniform { first, count })))
            }
            ("uniform_int", [_]) => Ok(match Integers::parse(reader, name, parameters)? {
                Some(Integers::Drawn(distribution)) => Some(Self::Integers(distribution)),
                _ => None,
            }),
            _ => Ok(None),
        }
    }
}

fn byte_count(reader: Reader, name: &str, term: &Term) -> Result<usize, ConfigError> {
    reader.integer(name, term, 0..=VALUE_BYTES_MAX).map(|n| n as usize)
}

fn exponential(reader: Reader, min: &Term, mean: &Term, larger: Larger) -> Result<Size, ConfigError> {
    let min = byte_count(reader, "Min", min)?;
    let mean = reader.positive("Mean", mean)?;
    let longest = (min as f64 + mean) * larger.times.max(1.0);
    if longest > VALUE_BYTES_MAX as f64 {
        return Err(reader.error(format!(
            "values of about {} bytes are more than the {} that can be asked for",
            grouped(longest as i128),
            grouped(VALUE_BYTES_MAX)
        )));
    }
    Ok(Size::Exponential { min, mean, larger })
}

impl Size {
    /// The least length of a value.
    pub(super) fn least(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Uniform { above, .. } => above + 1,
            Self::Exponential { min, .. } => min,
        }
    }

    /// The mean length over many draws.
    fn mean(self) -> f64 {
        match self {
            Self::Fixed(bytes) => bytes as f64,
            Self::Uniform { above, more } => above as f64 + (more as f64 + 1.0) / 2.0,
            Self::Exponential { min, mean, larger } => {
                let of = |times: f64| (min as f64 * times).trunc() + whole_mean(mean * times);
                of(1.0) * (1.0 - larger.probability) + of(larger.times) * larger.probability
            }
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Fixed(n) => bytes(n),
            Self::Uniform { above, more } => {
                format!(
                    "{} to {} bytes, uniformly distributed",
                    grouped(above as i128 + 1),
                    grouped(above as i128 + i128::from(more))
                )
            }
            Self::Exponential { min, mean, larger } => {
                let sizes = format!("{} and more, exponentially distributed with a mean of {mean} on top", bytes(min));
                match larger.probability {
                    0.0 => sizes,
                    p => format!("{sizes}, {} times that in {} % of cases", larger.times, p * 100.0),
                }
            }
        }
    }
}

/// The mean of exponentially distributed numbers that are rounded down.
fn whole_mean(mean: f64) -> f64 {
    1.0 / (1.0 / mean).exp_m1()
}
