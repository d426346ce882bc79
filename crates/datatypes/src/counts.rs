//! What a node counts about values of data types, under Riak's names.
//!
//! Riak has no names for sets that only grow. They are counted with all other requests, and not by
//! their type.

use ombak_runtime::Runtime;
use ombak_stats::{Feature, Figure, Histogram, KindCounts, Number, Spiral};
use ombak_types::props::DataType;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The counts of all data types of a node.
pub(crate) struct Counts {
    clock: Arc<dyn Runtime>,
    counters: TypeCounts,
    sets: TypeCounts,
    maps: TypeCounts,
    hlls: TypeCounts,
    hll_bytes: Spiral,
    hll_size: Histogram,
}

/// The counts of one data type.
#[derive(Debug)]
struct TypeCounts {
    /// Riak's name of the type.
    name: &'static str,
    requests: Arc<KindCounts>,
    updates: Spiral,
    update_time: Histogram,
    merges: Spiral,
    merge_time: Histogram,
    /// Nothing for types that do not know their actors.
    actors: Option<Histogram>,
}

impl TypeCounts {
    fn new(name: &'static str, has_actors: bool) -> Self {
        Self {
            name,
            requests: Arc::default(),
            updates: Spiral::default(),
            update_time: Histogram::default(),
            merges: Spiral::default(),
            merge_time: Histogram::default(),
            actors: has_actors.then(Histogram::default),
        }
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let name = self.name;
        let figure =
            |name, metric, help, number| Figure { name, metric, label: Some(("type", self.name)), help, number };
        let mut figures = self.requests.figures(name);
        figures.extend([
            figure(
                format!("vnode_{name}_update"),
                "data_type_updates_total",
                "Values of data types changed by this node as the coordinator.",
                Number::Spiral(&self.updates),
            ),
            figure(
                format!("vnode_{name}_update_time"),
                "data_type_update_duration_seconds",
                "Time to change a value of a data type, without writing it.",
                Number::Times(&self.update_time),
            ),
            figure(
                format!("object_{name}_merge"),
                "data_type_merges_total",
                "Values of data types merged with another one.",
                Number::Spiral(&self.merges),
            ),
            figure(
                format!("object_{name}_merge_time"),
                "data_type_merge_duration_seconds",
                "Time to merge two values of a data type.",
                Number::Times(&self.merge_time),
            ),
        ]);
        figures.extend(self.actors.as_ref().map(|actors| {
            let help = "Actors in the values of data types that were changed.";
            figure(format!("{name}_actor_counts"), "data_type_actors", help, Number::Counts(actors))
        }));
        figures
    }
}

impl Counts {
    pub(crate) fn new(clock: Arc<dyn Runtime>) -> Self {
        Self {
            clock,
            counters: TypeCounts::new("counter", true),
            sets: TypeCounts::new("set", true),
            maps: TypeCounts::new("map", true),
            hlls: TypeCounts::new("hll", false),
            hll_bytes: Spiral::default(),
            hll_size: Histogram::default(),
        }
    }

    fn of(&self, kind: DataType) -> Option<&TypeCounts> {
        match kind {
            DataType::Counter => Some(&self.counters),
            DataType::Set => Some(&self.sets),
            DataType::Map => Some(&self.maps),
            DataType::Hll => Some(&self.hlls),
            DataType::Gset => None,
        }
    }

    /// The counts of requests for values of a type.
    pub(crate) fn requests(&self, kind: DataType) -> Option<Arc<KindCounts>> {
        self.of(kind).map(|counts| counts.requests.clone())
    }

    /// The time, for [`Self::updated`] and [`Self::merged`].
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Records that a value was changed, which takes so many bytes afterwards, and which so many
    /// actors have changed if its type knows them.
    pub(crate) fn updated(&self, kind: DataType, actors: Option<usize>, bytes: usize, began: Instant) {
        let Some(counts) = self.of(kind) else { return };
        counts.updates.add(1);
        counts.update_time.record(self.micros_since(began));
        if let (Some(actors), Some(count)) = (&counts.actors, actors) {
            actors.record(count as u64);
        }
        if kind == DataType::Hll {
            self.hll_bytes.add(bytes as u64);
            self.hll_size.record(bytes as u64);
        }
    }

    /// Records that two values were merged.
    pub(crate) fn merged(&self, kind: DataType, began: Instant) {
        let Some(counts) = self.of(kind) else { return };
        counts.merges.add(1);
        counts.merge_time.record(self.micros_since(began));
    }

    fn micros_since(&self, began: Instant) -> u64 {
        u64::try_from(self.now().saturating_duration_since(began).as_micros()).unwrap_or(u64::MAX)
    }
}

impl Feature for Counts {
    fn figures(&self) -> Vec<Figure<'_>> {
        let types = [&self.counters, &self.sets, &self.maps, &self.hlls];
        let mut figures: Vec<_> = types.into_iter().flat_map(TypeCounts::figures).collect();
        let of_hlls = |metric, help, number| Figure { name: "hll_bytes".into(), metric, label: None, help, number };
        let (written, sizes) =
            ("Bytes of the HyperLogLogs that were changed.", "Size of the HyperLogLogs that were changed.");
        figures.push(of_hlls("hll_changed_bytes_total", written, Number::Spiral(&self.hll_bytes)));
        figures.push(of_hlls("hll_size_bytes", sizes, Number::Bytes(&self.hll_size)));
        figures
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}
