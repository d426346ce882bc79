//! Numbers that a feature counts itself, and that the node shows beside its own.

use crate::histogram::Histogram;
use crate::spiral::Spiral;
use std::fmt;

/// A feature that counts something. It attaches with [`crate::Stats::attach`].
pub trait Feature: Send + Sync + fmt::Debug {
    /// What the feature counts. The list has the same names at all times.
    fn figures(&self) -> Vec<Figure<'_>>;
}

/// One number, or several that belong together, under the names at both resources.
#[derive(Debug)]
pub struct Figure<'a> {
    /// The name at `/stats`, without the suffixes of [`Number`]: Riak's if Riak has one.
    pub name: String,
    /// The name at `/metrics`, without the prefix `ombak_`. Figures with different labels may share
    /// it; their numbers are then of one sort.
    pub metric: &'static str,
    /// The label at `/metrics`, and its value.
    pub label: Option<(&'static str, &'static str)>,
    /// What is counted, for people: a sentence.
    pub help: &'static str,
    /// The number.
    pub number: Number<'a>,
}

/// The number of a figure, and its suffixes at `/stats`.
#[derive(Clone, Copy, Debug)]
pub enum Number<'a> {
    /// A counter, as `NAME` of the last minute and `NAME_total`.
    Spiral(&'a Spiral),
    /// A counter, as `NAME_one` of the last minute and `NAME_count`.
    OneAndCount(&'a Spiral),
    /// Times in microseconds, as `NAME_mean`, `_median`, `_95`, `_99` and `_100`.
    Times(&'a Histogram),
    /// Times in microseconds, as `NAME_min`, `_max`, `_mean`, `_median`, `_95`, `_99` and `_999`.
    Latencies(&'a Histogram),
    /// Times in microseconds, as `NAME_mean` and `NAME_100` alone.
    MeanAndMost(&'a Histogram),
    /// Sizes in bytes, with the suffixes of [`Number::Times`].
    Bytes(&'a Histogram),
    /// Anything else, with the same suffixes.
    Counts(&'a Histogram),
    /// A count since the start, as `NAME`.
    Total(u64),
    /// A number that rises and falls, as `NAME`.
    Gauge(u64),
    /// A time in microseconds that rises and falls, as `NAME`.
    Time(u64),
}

impl Figure<'_> {
    /// Adds the numbers under their names at `/stats`.
    pub(crate) fn add_numbers(&self, numbers: &mut Vec<(String, u64)>) {
        let name = &self.name;
        match self.number {
            Number::Spiral(spiral) => {
                numbers.push((name.clone(), spiral.last_minute()));
                numbers.push((format!("{name}_total"), spiral.total()));
            }
            Number::OneAndCount(spiral) => {
                numbers.push((format!("{name}_one"), spiral.last_minute()));
                numbers.push((format!("{name}_count"), spiral.total()));
            }
            Number::Times(histogram) | Number::Bytes(histogram) | Number::Counts(histogram) => {
                numbers.extend(histogram.numbers(name));
            }
            Number::Latencies(histogram) => numbers.extend(histogram.latencies(name)),
            Number::MeanAndMost(histogram) => numbers.extend(histogram.mean_and_most(name)),
            Number::Total(value) | Number::Gauge(value) | Number::Time(value) => numbers.push((name.clone(), value)),
        }
    }

    /// Ends the current window ([`crate::Stats::tick`]).
    pub(crate) fn rotate(&self, windows: usize) {
        match self.number {
            Number::Spiral(spiral) | Number::OneAndCount(spiral) => spiral.rotate(windows),
            Number::Times(histogram)
            | Number::Latencies(histogram)
            | Number::MeanAndMost(histogram)
            | Number::Bytes(histogram)
            | Number::Counts(histogram) => {
                histogram.rotate(windows);
            }
            Number::Total(_) | Number::Gauge(_) | Number::Time(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KindCounts, Stats};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    #[derive(Debug, Default)]
    struct Cakes {
        baked: Spiral,
        eaten: Spiral,
        size: Histogram,
        wait: Histogram,
        kinds: KindCounts,
    }

    impl Feature for Cakes {
        fn figures(&self) -> Vec<Figure<'_>> {
            let figure =
                |name: &str, number| Figure { name: name.into(), metric: "cakes", label: None, help: "Cakes.", number };
            let mut figures = self.kinds.figures("cake");
            figures.extend([
                figure("baked", Number::Spiral(&self.baked)),
                figure("eaten", Number::OneAndCount(&self.eaten)),
                figure("size", Number::Bytes(&self.size)),
                figure("wait", Number::Latencies(&self.wait)),
                figure("left", Number::Gauge(3)),
                figure("age", Number::Time(5)),
                figure("burnt", Number::Total(4)),
            ]);
            figures
        }
    }

    #[test]
    fn what_a_feature_counts_is_shown_and_the_last_minute_passes() {
        let start = Instant::now();
        let (stats, cakes) = (Stats::new(start), Arc::new(Cakes::default()));
        stats.attach(cakes.clone());
        cakes.baked.add(5);
        cakes.eaten.add(2);
        cakes.size.record(30);
        [20, 40].into_iter().for_each(|wait| cakes.wait.record(wait));
        cakes.kinds.get(100, 2, 7);
        cakes.kinds.get(300, 0, 0);
        cakes.kinds.put(50);
        cakes.kinds.read_repair();
        let shows = |expected: &[(&str, u64)]| {
            let numbers = stats.numbers();
            for (name, value) in expected {
                let found: Vec<u64> = numbers.iter().filter(|(is, _)| is == name).map(|(_, value)| *value).collect();
                assert_eq!(found, [*value], "{name}");
            }
        };
        shows(&[
            ("baked", 5),
            ("baked_total", 5),
            ("eaten_one", 2),
            ("eaten_count", 2),
            ("left", 3),
            ("age", 5),
            ("burnt", 4),
        ]);
        shows(&[("size_mean", 30), ("size_median", 30), ("size_95", 30), ("size_99", 30), ("size_100", 30)]);
        shows(&[("wait_min", 20), ("wait_max", 40), ("wait_mean", 30), ("wait_median", 20)]);
        shows(&[("wait_95", 40), ("wait_99", 40), ("wait_999", 40)]);
        shows(&[("node_gets_cake", 2), ("node_gets_cake_total", 2), ("node_get_fsm_cake_time_100", 300)]);
        shows(&[("node_get_fsm_cake_siblings_mean", 2), ("node_get_fsm_cake_objsize_mean", 7)]);
        shows(&[("node_puts_cake", 1), ("node_put_fsm_cake_time_mean", 50), ("read_repairs_cake_total", 1)]);
        stats.tick(start + Duration::from_secs(120));
        shows(&[("baked", 0), ("baked_total", 5), ("eaten_one", 0), ("eaten_count", 2), ("size_mean", 0), ("left", 3)]);
        shows(&[("node_gets_cake", 0), ("node_gets_cake_total", 2), ("node_get_fsm_cake_time_100", 0)]);
    }
}
