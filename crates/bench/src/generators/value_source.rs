//! The values of one worker.

use super::pool::Pool;
use super::random::Random;
use super::values::Size;
use super::{integers::Distribution, words::print};
use bytes::Bytes;

/// A source of values. Most values are slices of memory that all workers share. Only values that
/// must be new each time are generated.
#[derive(Debug)]
pub(super) enum ValueSource {
    Slices {
        size: Size,
        pool: Pool,
    },
    Constant(Bytes),
    /// A buffer for as many random characters as it is long.
    Printable(Vec<u8>),
    Integers {
        distribution: Distribution,
        text: Vec<u8>,
    },
}

impl ValueSource {
    /// Returns the next value.
    pub(super) fn next(&mut self, random: &mut Random) -> &[u8] {
        match self {
            Self::Slices { size, pool } => {
                let bytes = size.draw(random);
                pool.slice(bytes, random)
            }
            Self::Constant(bytes) => bytes,
            Self::Printable(text) => {
                random.fill_printable(text);
                text
            }
            Self::Integers { distribution, text } => {
                text.clear();
                print(text, format_args!("{}", distribution.draw(random)));
                text
            }
        }
    }
}

impl Size {
    fn draw(self, random: &mut Random) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Uniform { above, more } => above + random.uniform(more) as usize,
            Self::Exponential { min, mean, larger } => {
                let times = if random.chance(larger.probability) { larger.times } else { 1.0 };
                // Conversions from floats truncate, and saturate at the bounds of the integer type.
                ((min as f64 * times) as usize).saturating_add(random.exponential(mean * times) as usize)
            }
        }
    }
}
