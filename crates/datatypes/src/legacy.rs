//! The counters of Riak 1.4: values of buckets without a type that allow siblings.
//!
//! Nothing in the properties of such a bucket tells that it has counters. So they lie as Riak's
//! bytes in plain siblings, beside whatever else is put there, and a reader picks them out.

use crate::counts::Counts;
use crate::sibling::{change_of, merged_meta, refused};
use bytes::Bytes;
use ombak_crdt::{Change, Counter, Request, RiakCounter, RiakValue, State};
use ombak_kv::hooks::ValueKind;
use ombak_kv::{PutOptions, PutRequest};
use ombak_stats::KindCounts;
use ombak_types::props::DataType;
use ombak_types::{Bucket, BucketProps, Dot, Error, Object, Sibling, SiblingMeta, VectorClock};
use std::sync::Arc;

/// The number of the kind in messages. It stays.
const NUMBER: u16 = 2;

/// The kind of counters in buckets without a type.
#[derive(Clone, Debug)]
pub struct LegacyCounters {
    counts: Arc<Counts>,
}

impl LegacyCounters {
    /// They are counted with the counters of bucket types.
    pub(crate) const fn new(counts: Arc<Counts>) -> Self {
        Self { counts }
    }

    /// All counters merged into one, counted; `None` if there is none.
    fn merge_counted<'a>(&self, counters: impl Iterator<Item = &'a Sibling>) -> Option<Counter> {
        counters.filter_map(read).reduce(|one, other| {
            let began = self.counts.now();
            let both = merged(one, other);
            self.counts.merged(DataType::Counter, began);
            both
        })
    }
}

/// A put that adds an amount of either sign to a counter.
pub fn legacy_put(bucket: Bucket, key: Bytes, amount: i64, options: PutOptions) -> PutRequest {
    let change = Change::Request { request: Request::Counter(amount), context: None };
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(change.to_bytes())] };
    PutRequest { bucket, key: Some(key), object, options: PutOptions { operation: Some(NUMBER), ..options } }
}

/// The sum of the counter in an object; `None` if it has none. Concurrent counters are merged, and
/// other values beside them do not count.
pub fn legacy_counter(object: &Object) -> Option<i128> {
    object.siblings.iter().filter_map(read).reduce(merged).map(|counter| counter.value())
}

/// The counter in a sibling; `None` for any other value.
fn read(sibling: &Sibling) -> Option<Counter> {
    if sibling.meta.deleted || sibling.meta.kind != 0 {
        return None;
    }
    match RiakValue::from_bytes(&sibling.value) {
        Ok(RiakValue::Counter(counter, RiakCounter::Legacy)) => Some(counter),
        _ => None,
    }
}

fn merged(mut one: Counter, other: Counter) -> Counter {
    one.merge(&other);
    one
}

fn sibling(counter: Counter, meta: SiblingMeta) -> Sibling {
    let value = RiakValue::Counter(counter, RiakCounter::Legacy);
    let content_type = Some(Bytes::from_static(value.content_type().as_bytes()));
    // It is a plain value, with one event.
    Sibling { value: value.to_bytes(), meta: SiblingMeta { content_type, of_kind: None, ..meta } }
}

impl ValueKind for LegacyCounters {
    fn number(&self) -> u16 {
        NUMBER
    }

    fn serves(&self, _props: &BucketProps) -> bool {
        false
    }

    fn operation_of(&self, _props: &BucketProps, _value: &Sibling) -> Option<Bytes> {
        None
    }

    fn begins(&self, _props: &BucketProps, values: &[Sibling]) -> bool {
        values.iter().all(|value| read(value).is_none())
    }

    fn apply(
        &self,
        _props: &BucketProps,
        values: &mut Vec<Sibling>,
        operation: &Sibling,
        event: &Dot,
    ) -> Result<Sibling, Error> {
        let began = self.counts.now();
        let change = change_of(operation)?;
        let (counters, others): (Vec<_>, Vec<_>) = std::mem::take(values).into_iter().partition(|v| read(v).is_some());
        *values = others;
        let counter = self.merge_counted(counters.iter()).unwrap_or_default();
        let state = change.apply(State::Counter(counter), &event.actor).map_err(refused)?;
        self.counts.updated(state.kind(), state.actor_count(), 0, began);
        match state {
            State::Counter(counter) => Ok(sibling(counter, merged_meta(&counters))),
            _ => Err(Error::Unsupported("a counter stays a counter".into())),
        }
    }

    fn merge(&self, values: Vec<Sibling>) -> Vec<Sibling> {
        let (counters, mut merged_values): (Vec<_>, Vec<_>) = values.into_iter().partition(|v| read(v).is_some());
        let counter = self.merge_counted(counters.iter());
        merged_values.extend(counter.map(|counter| sibling(counter, merged_meta(&counters))));
        merged_values
    }

    fn show(&self, value: Sibling) -> Result<Sibling, Error> {
        Ok(value)
    }

    fn counts(&self, props: &BucketProps) -> Option<Arc<KindCounts>> {
        if props.datatype.is_some() { None } else { self.counts.requests(DataType::Counter) }
    }
}
