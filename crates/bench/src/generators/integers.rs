//! Generators of integers: drawn from a distribution, or counted (docs/riak/basho-bench.md §2).

use super::draw::{Exhausted, Place};
use super::random::Random;
use super::reader::Reader;
use super::resume::ResumeFile;
use super::words::grouped;
use crate::config::ConfigError;
use crate::term::Term;

/// The largest integer that a configuration may name.
const INTEGER_MAX: i128 = i64::MAX as i128;

/// The shape of the Pareto distribution for which about 80 % of the draws fall into the lowest
/// fifth.
const PARETO_SHAPE: f64 = 1.5;

/// A configured generator of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Integers {
    /// Draws integers independently of each other.
    Drawn(Distribution),
    /// Counts through a range once and then ends.
    Counted(Count),
}

/// A distribution of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Distribution {
    /// The integers from `first` to `first + count − 1`, with equal probability.
    Uniform { first: i64, count: u64 },
    /// The integers from 1 to 5 · `fifth`. With probability 0.8 the lowest fifth is chosen,
    /// otherwise the rest; each is uniform.
    EightyTwenty { fifth: u64 },
    /// Pareto distributed integers from 0 up. Values above `max` become `max`.
    Pareto { scale: f64, max: Option<i64> },
}

/// A range of integers in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count {
    first: i64,
    count: u64,
    /// Whether the workers divide the range among them. Otherwise each worker counts through all of
    /// it.
    partitioned: bool,
}

impl Integers {
    /// The forms of these generators in a configuration.
    pub(super) const FORMS: [&'static str; 8] = [
        "{uniform_int, Max}",
        "{uniform_int, Start, N}",
        "{eightytwenty_int, Max}",
        "{pareto_int, Max}",
        "{truncated_pareto_int, Max}",
        "{sequential_int, Max}",
        "{partitioned_sequential_int, N}",
        "{partitioned_sequential_int, Start, N}",
    ];

    /// Parses a generator of integers; `None` if the name is another one.
    pub(super) fn parse(reader: Reader, name: &str, parameters: &[Term]) -> Result<Option<Self>, ConfigError> {
        let drawn = |distribution| Ok(Some(Self::Drawn(distribution)));
        let counted = |first, count, partitioned| Ok(Some(Self::Counted(Count { first, count, partitioned })));
        match (name, parameters) {
            ("uniform_int", [max]) => {
                let count = at_least_1(reader.inside("{uniform_int, Max}")?, "Max", max)?;
                drawn(Distribution::Uniform { first: 1, count })
            }
            ("uniform_int", [start, n]) => {
                let (first, count) = range(reader.inside("{uniform_int, Start, N}")?, start, n)?;
                drawn(Distribution::Uniform { first, count })
            }
            ("eightytwenty_int", [max]) => {
                let max = reader.inside("{eightytwenty_int, Max}")?.integer("Max", max, 5..=INTEGER_MAX)?;
                drawn(Distribution::EightyTwenty { fifth: (max / 5) as u64 })
            }
            ("pareto_int", [max]) => {
                let max = at_least_1(reader.inside("{pareto_int, Max}")?, "Max", max)?;
                drawn(Distribution::Pareto { scale: pareto_scale(max), max: None })
            }
            ("truncated_pareto_int", [max]) => {
                let max = at_least_1(reader.inside("{truncated_pareto_int, Max}")?, "Max", max)?;
                drawn(Distribution::Pareto { scale: pareto_scale(max), max: Some(max as i64) })
            }
            ("sequential_int", [max]) => {
                counted(0, at_least_1(reader.inside("{sequential_int, Max}")?, "Max", max)?, false)
            }
            ("partitioned_sequential_int", [n]) => {
                counted(0, at_least_1(reader.inside("{partitioned_sequential_int, N}")?, "N", n)?, true)
            }
            ("partitioned_sequential_int", [start, n]) => {
                let (first, count) = range(reader.inside("{partitioned_sequential_int, Start, N}")?, start, n)?;
                counted(first, count, true)
            }
            _ => Ok(None),
        }
    }

    /// Describes the integers in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Drawn(distribution) => distribution.describe(),
            Self::Counted(Count { first, count, partitioned }) => {
                let (first, last) = (grouped(*first), grouped(i128::from(*first) + i128::from(*count) - 1));
                let whose = if *partitioned { "split among the workers" } else { "all of them by each worker" };
                format!("the integers from {first} to {last} in order, {whose}, then the end")
            }
        }
    }

    /// How many different integers there can be.
    pub(super) fn space(&self) -> Option<u128> {
        match *self {
            Self::Drawn(Distribution::Uniform { count, .. }) | Self::Counted(Count { count, .. }) => Some(count.into()),
            Self::Drawn(Distribution::EightyTwenty { fifth }) => Some(u128::from(fifth) * 5),
            Self::Drawn(Distribution::Pareto { max, .. }) => max.map(|max| u128::from(max.unsigned_abs()) + 1),
        }
    }
}

impl Count {
    /// Whether the workers divide the range among them.
    pub(super) const fn is_partitioned(&self) -> bool {
        self.partitioned
    }
}

impl Distribution {
    /// Draws the next integer.
    pub(super) fn draw(&self, random: &mut Random) -> i64 {
        match *self {
            // The sum cannot overflow: the first and the last integer were checked when the range
            // was parsed.
            Self::Uniform { first, count } => first.wrapping_add_unsigned(random.uniform(count) - 1),
            Self::EightyTwenty { fifth } if random.chance(0.8) => random.uniform(fifth) as i64,
            Self::EightyTwenty { fifth } => (fifth + random.uniform(4 * fifth)) as i64,
            Self::Pareto { scale, max } => {
                let upper = 1.0 - random.unit();
                // The conversion from a float truncates, and saturates at the bounds of the integer
                // type.
                let drawn = ((upper.powf(-1.0 / PARETO_SHAPE) - 1.0) * scale) as i64;
                max.map_or(drawn, |max| drawn.min(max))
            }
        }
    }

    /// Describes the distribution in words.
    pub(super) fn describe(&self) -> String {
        match *self {
            Self::Uniform { first, count } => {
                let last = i128::from(first) + i128::from(count) - 1;
                format!("integers from {} to {}, uniformly distributed", grouped(first), grouped(last))
            }
            Self::EightyTwenty { fifth } => format!(
                "integers from 1 to {}, four of five draws from the lowest fifth",
                grouped(u128::from(fifth) as i128 * 5)
            ),
            Self::Pareto { scale, max } => {
                let fifth = grouped((scale * 2.0) as i128);
                let end =
                    max.map_or(String::from("without end"), |max| format!("what is above {0} as {0}", grouped(max)));
                format!("Pareto distributed integers from 0, about four of five below {fifth}, {end}")
            }
        }
    }
}

fn at_least_1(reader: Reader, name: &str, term: &Term) -> Result<u64, ConfigError> {
    reader.integer(name, term, 1..=INTEGER_MAX).map(|n| n as u64)
}

/// Parses the first integer and the length of a range. The last integer must be a valid key, too.
fn range(reader: Reader, start: &Term, n: &Term) -> Result<(i64, u64), ConfigError> {
    let start = reader.integer("Start", start, i128::from(i64::MIN)..=INTEGER_MAX)?;
    let n = reader.integer("N", n, 1..=(INTEGER_MAX - start + 1).min(INTEGER_MAX))?;
    Ok((start as i64, n as u64))
}

fn pareto_scale(max: u64) -> f64 {
    (max as f64 * 0.2).trunc() * (PARETO_SHAPE - 1.0)
}

/// The integers of one worker.
#[derive(Debug)]
pub(super) enum IntegerSource {
    Drawn(Distribution),
    Counted(Counter),
}

/// The position of a worker in its range.
#[derive(Debug)]
pub(super) struct Counter {
    first: i64,
    count: u64,
    /// How many integers have been returned.
    given: u64,
    resume: Option<ResumeFile>,
}

impl IntegerSource {
    /// Creates the source of one worker.
    pub(super) fn new(integers: Integers, place: Place, resume: Option<ResumeFile>) -> Result<Self, ConfigError> {
        match integers {
            Integers::Drawn(distribution) => Ok(Self::Drawn(distribution)),
            Integers::Counted(count) => Counter::new(count, place, resume).map(Self::Counted),
        }
    }

    /// Returns the next integer.
    pub(super) fn next(&mut self, random: &mut Random) -> Result<i64, Exhausted> {
        match self {
            Self::Drawn(distribution) => Ok(distribution.draw(random)),
            Self::Counted(counter) => counter.next(),
        }
    }
}

impl Counter {
    fn new(all: Count, place: Place, resume: Option<ResumeFile>) -> Result<Self, ConfigError> {
        let (skipped, count) = if all.partitioned { share(all.count, place) } else { (0, all.count) };
        let given = match &resume {
            Some(file) => file.read()?.filter(|given| *given <= count).unwrap_or(0),
            None => 0,
        };
        Ok(Self { first: all.first.wrapping_add_unsigned(skipped), count, given, resume })
    }

    fn next(&mut self) -> Result<i64, Exhausted> {
        if self.given == self.count {
            return Err(Exhausted);
        }
        if let Some(file) = &mut self.resume {
            file.passed(self.given);
        }
        let next = self.first.wrapping_add_unsigned(self.given);
        self.given += 1;
        Ok(next)
    }
}

/// A worker's share of `count` integers: how many come before it, and how many it has. The last
/// worker also has the remainder.
fn share(count: u64, place: Place) -> (u64, u64) {
    let workers = (place.concurrent as u64).max(1);
    let before = (place.worker as u64).clamp(1, workers) - 1;
    let each = count / workers;
    let skipped = each * before;
    (skipped, if before + 1 == workers { count - skipped } else { each })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_cover_everything_exactly_once(count in 1_u64..1_000_000, concurrent in 1_usize..300) {
            let mut next = 0;
            for worker in 1..=concurrent {
                let (skipped, own) = share(count, Place { worker, concurrent, seed: [0; 3] });
                prop_assert_eq!(skipped, next);
                next += own;
            }
            prop_assert_eq!(next, count);
        }
    }
}
