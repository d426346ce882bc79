//! Values of bucket types with a data type.
//!
//! A large value has a summary, and operations add to it ([`crate::form`]). A small one is written
//! as a whole each time.
//!
//! Riak's bytes can lie in such a bucket, too: what was imported keeps them until the next
//! operation on the key.

use crate::counts::Counts;
use crate::form;
use crate::sibling::{change_of, damaged, merged_meta, refused};
use bytes::Bytes;
use ombak_crdt::{Change, Precision, RiakCounter, RiakValue, State, Summary};
use ombak_kv::hooks::{Growth, ValueKind};
use ombak_kv::{PutOptions, PutRequest};
use ombak_stats::{Feature, KindCounts};
use ombak_types::props::DataType;
use ombak_types::{Bucket, BucketProps, Dot, Error, Object, Sibling, SiblingMeta, VectorClock};
use std::sync::Arc;

/// The number of the kind in messages and stores. It stays.
const NUMBER: u16 = 1;

/// The kind of values in bucket types with a data type.
#[derive(Clone, Debug)]
pub struct TypedValues {
    counts: Arc<Counts>,
    /// Larger values are added to.
    whole_bytes_max: usize,
}

/// A put that changes a value. Without a key the engine makes one.
pub fn typed_put(bucket: Bucket, key: Option<Bytes>, change: &Change, options: PutOptions) -> PutRequest {
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(change.to_bytes())] };
    PutRequest { bucket, key, object, options: PutOptions { operation: Some(NUMBER), ..options } }
}

/// The value in an object that a get or put returned as it is stored. An object without a value of
/// the bucket's data type has a value that nobody has changed, as in Riak.
///
/// # Errors
/// The bucket has no data type, or a value is damaged.
pub fn state_of(props: &BucketProps, object: &Object) -> Result<State, Error> {
    let kind = kind_of(props)?;
    let mut state = State::new(kind, precision_of(props));
    for sibling in &object.siblings {
        if let Some(other) = read(sibling)?.filter(|other| other.kind() == kind) {
            merge(&mut state, &other);
        }
    }
    Ok(state)
}

fn kind_of(props: &BucketProps) -> Result<DataType, Error> {
    props.datatype.ok_or_else(|| Error::Unsupported("the bucket has no data type".into()))
}

/// The precision of the bucket's HyperLogLogs.
fn precision_of(props: &BucketProps) -> Precision {
    props.hll_precision.and_then(|bits| Precision::new(bits.into())).unwrap_or(Precision::DEFAULT)
}

/// The state in a sibling; `None` if it is a plain value or a tombstone.
fn read(sibling: &Sibling) -> Result<Option<State>, Error> {
    match sibling.meta.kind {
        _ if sibling.meta.deleted => Ok(None),
        NUMBER => form::read(&sibling.value).map(Some).map_err(damaged),
        0 => Ok(read_riak(&sibling.value)),
        _ => Ok(None),
    }
}

/// Reads Riak's bytes. A counter of Riak 1.4 is another value than one with a type.
fn read_riak(value: &[u8]) -> Option<State> {
    match RiakValue::from_bytes(value) {
        Ok(RiakValue::Counter(_, RiakCounter::Legacy)) | Err(_) => None,
        Ok(value) => Some(value.into()),
    }
}

/// Merges a state of the same data type.
fn merge(state: &mut State, other: &State) {
    // Only types can differ. The caller has compared them.
    let merged = state.merge(other);
    debug_assert_eq!(merged, Ok(()));
}

const fn content_type(kind: DataType) -> &'static str {
    match kind {
        DataType::Counter => "application/riak_counter",
        DataType::Set => "application/riak_set",
        DataType::Gset => "application/riak_gset",
        DataType::Map => "application/riak_map",
        DataType::Hll => "application/riak_hll",
    }
}

/// Whether the sibling is the head of a value, read without the value itself.
fn is_bare_head(sibling: &Sibling) -> bool {
    sibling.meta.kind == NUMBER && sibling.value.is_empty()
}

impl TypedValues {
    pub(crate) const fn new(counts: Arc<Counts>, whole_bytes_max: usize) -> Self {
        Self { counts, whole_bytes_max }
    }

    /// A value in a sibling.
    fn sibling(&self, state: &State, meta: SiblingMeta) -> Sibling {
        let bytes = state.to_bytes();
        let content_type = Some(Bytes::from_static(content_type(state.kind()).as_bytes()));
        let mut of_kind = meta.of_kind.clone().unwrap_or_default();
        let value = if bytes.len() <= self.whole_bytes_max {
            of_kind.summary = Bytes::new();
            form::whole(&bytes)
        } else {
            of_kind.summary = Summary::of(state, bytes.len() as u64).to_bytes();
            form::growing(&bytes)
        };
        Sibling { value, meta: SiblingMeta { content_type, kind: NUMBER, of_kind: Some(of_kind), ..meta } }
    }

    /// [`merge`], counted.
    fn merge_counted(&self, state: &mut State, other: &State) {
        let began = self.counts.now();
        merge(state, other);
        self.counts.merged(state.kind(), began);
    }
}

impl ValueKind for TypedValues {
    fn number(&self) -> u16 {
        NUMBER
    }

    fn serves(&self, props: &BucketProps) -> bool {
        props.datatype.is_some()
    }

    fn operation_of(&self, props: &BucketProps, value: &Sibling) -> Option<Bytes> {
        let state = read_riak(&value.value).filter(|state| Some(state.kind()) == props.datatype)?;
        Some(Change::Merge(state).to_bytes())
    }

    fn begins(&self, props: &BucketProps, values: &[Sibling]) -> bool {
        let is_value = |value: &Sibling| match value.meta.kind {
            NUMBER => true,
            0 => self.operation_of(props, value).is_some(),
            _ => false,
        };
        !values.iter().any(is_value)
    }

    fn apply(
        &self,
        props: &BucketProps,
        values: &mut Vec<Sibling>,
        operation: &Sibling,
        event: &Dot,
    ) -> Result<Sibling, Error> {
        let began = self.counts.now();
        let (kind, change) = (kind_of(props)?, change_of(operation)?);
        // A bucket with a lower precision than its HyperLogLogs lowers them.
        let mut state = State::new(kind, precision_of(props));
        let mut changed = Vec::new();
        for value in std::mem::take(values) {
            match read(&value)?.filter(|other| other.kind() == kind) {
                Some(other) => {
                    // The first one replaces nothing.
                    if changed.is_empty() {
                        merge(&mut state, &other);
                    } else {
                        self.merge_counted(&mut state, &other);
                    }
                    changed.push(value);
                }
                None => values.push(value),
            }
        }
        let meta = match &change {
            Change::Request { .. } => merged_meta(&changed),
            Change::Merge(_) => operation.meta.clone(),
        };
        let state = change.apply(state, &event.actor).map_err(refused)?;
        let value = self.sibling(&state, meta);
        self.counts.updated(state.kind(), state.actor_count(), value.value.len(), began);
        Ok(value)
    }

    fn grow(
        &self,
        props: &BucketProps,
        summary: &Bytes,
        value: Option<&Sibling>,
        operation: &Sibling,
        event: &Dot,
    ) -> Result<Growth, Error> {
        let began = self.counts.now();
        let Change::Request { request, context } = change_of(operation)? else { return Ok(Growth::Whole) };
        let mut summary = Summary::from_bytes(summary).map_err(damaged)?;
        if summary.kind() != kind_of(props)? {
            return Ok(Growth::Whole);
        }
        let context = context.as_ref();
        let delta = match value {
            None => match summary.delta(&request, precision_of(props), &event.actor, context) {
                Some(delta) => delta,
                None => return Ok(Growth::NeedsValue),
            },
            Some(value) => match read(value)? {
                Some(state) => state.delta(&request, &event.actor, context).map_err(refused)?,
                None => return Ok(Growth::Whole),
            },
        };
        let bytes = form::addition(&delta);
        if !summary.add(&delta, bytes.len() as u64) {
            return Ok(Growth::Whole);
        }
        self.counts.updated(summary.kind(), summary.actor_count(), summary.value_bytes(), began);
        Ok(Growth::Added { bytes, summary: summary.to_bytes() })
    }

    fn grown(&self, summary: &Bytes, added: &Bytes) -> Option<Bytes> {
        let mut summary = Summary::from_bytes(summary).ok()?;
        let delta = form::read_addition(added).ok()?;
        summary.add(&delta, added.len() as u64).then(|| summary.to_bytes())
    }

    fn must_fold(&self, summary: &Bytes) -> bool {
        Summary::from_bytes(summary).is_ok_and(|summary| summary.must_fold())
    }

    fn fold(&self, value: Sibling) -> Result<Sibling, Error> {
        match read(&value)? {
            Some(state) => Ok(self.sibling(&state, value.meta)),
            None => Ok(value),
        }
    }

    fn merge(&self, values: Vec<Sibling>) -> Vec<Sibling> {
        let (heads, values): (Vec<_>, Vec<_>) = values.into_iter().partition(is_bare_head);
        let mut merged: Vec<Sibling> = Vec::new();
        if !heads.is_empty() {
            merged.push(Sibling { value: Bytes::new(), meta: merged_meta(&heads) });
        }
        let mut groups: Vec<(State, Vec<Sibling>)> = Vec::new();
        for value in values {
            // What cannot be read stays as it is: showing it is an error.
            let Ok(Some(state)) = read(&value) else {
                merged.push(value);
                continue;
            };
            match groups.iter_mut().find(|(other, _)| other.kind() == state.kind()) {
                Some((other, members)) => {
                    self.merge_counted(other, &state);
                    members.push(value);
                }
                None => groups.push((state, vec![value])),
            }
        }
        merged.extend(groups.into_iter().map(|(state, members)| match <[Sibling; 1]>::try_from(members) {
            // One value needs no new bytes.
            Ok([only]) => only,
            Err(members) => self.sibling(&state, merged_meta(&members)),
        }));
        merged
    }

    fn show(&self, value: Sibling) -> Result<Sibling, Error> {
        let Some(state) = read(&value)? else { return Ok(value) };
        let value = Sibling { value: RiakValue::of(state, RiakCounter::Typed).to_bytes(), ..value };
        Ok(value)
    }

    fn counts(&self, props: &BucketProps) -> Option<Arc<KindCounts>> {
        self.counts.requests(props.datatype?)
    }

    fn feature(&self) -> Option<Arc<dyn Feature>> {
        Some(self.counts.clone())
    }
}

#[cfg(test)]
mod tests;
