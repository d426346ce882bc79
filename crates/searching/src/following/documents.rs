//! The documents of an object.

use ombak_crdt::{FieldValue, Value as Shown};
use ombak_datatypes::{legacy_counter, state_of};
use ombak_kv::hooks::PresentVersion;
use ombak_search::dates::Date;
use ombak_search::document_id::DocumentId;
use ombak_search::extract::{DataTypeValue, ExtractError, Extractor, Pair, extract_data_type, extract_tags};
use ombak_search::schema::Schema;
use ombak_search::values::DocumentFields;
use ombak_search_index::IndexDocument;
use ombak_types::names::split_storage_key;
use ombak_types::{Object, Sibling};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The type of the values of Riak 1.4's counters.
const COUNTER_TYPE: &[u8] = b"application/riak_counter";

/// The documents of the present version of a key: one for each sibling. A value that cannot be read
/// has a document that says so (`_yz_err`).
pub(super) fn documents_of(
    schema: &Schema,
    (partition, storage_key): (u32, &[u8]),
    present: &PresentVersion,
) -> Vec<IndexDocument> {
    let Ok((bucket_type, bucket, key)) = split_storage_key(storage_key) else { return Vec::new() };
    let object = &present.object;
    let is_one = object.siblings.len() == 1;
    let document = |vtag: Option<Vec<u8>>, expires_secs: Option<u32>, fields: Option<DocumentFields>| {
        let (bucket_type, bucket, key) = (bucket_type.to_vec(), bucket.to_vec(), key.to_vec());
        let shown = vtag.as_ref().map(|vtag| String::from_utf8_lossy(vtag).into_owned());
        let id = DocumentId { bucket_type, bucket, key, partition, vtag };
        let has_error = fields.is_none();
        IndexDocument { id, vtag: shown, has_error, expires_secs, fields: fields.unwrap_or_default() }
    };
    let read = |sibling: &Sibling, pairs: &dyn Fn() -> Result<Vec<Pair>, ExtractError>| {
        without_panic(|| DocumentFields::read(schema, &pairs().ok()?, written_at(sibling)?).ok())
    };
    if let (Some(_), [value, ..]) = (present.props.datatype, &object.siblings[..]) {
        let fields = read(value, &|| pairs_of_data_type(present));
        return vec![document(None, object.expires_secs(), fields)];
    }
    let of_sibling = |sibling: &Sibling| {
        let vtag = sibling.meta.vtag.as_ref().map(|vtag| vtag.to_vec()).unwrap_or_default();
        document((!is_one).then_some(vtag), sibling.meta.expires_secs, read(sibling, &|| pairs_of(sibling)))
    };
    object.siblings.iter().map(of_sibling).collect()
}

/// What a call returns, or nothing if it panics. A value that makes the code fail that reads it is
/// like one that cannot be read: otherwise it would hold up the index for ever.
fn without_panic<T>(call: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        tracing::error!(
            "a value made the code panic that reads values for search; it counts as one that cannot be read"
        );
        None
    })
}

/// The moment that date math in a value starts from. All replicas make the same document of it.
fn written_at(sibling: &Sibling) -> Option<Date> {
    let unix_ms = sibling.meta.last_modified.map_or(0, |at| at.0 / 1_000);
    Date::from_unix_ms(i64::try_from(unix_ms).ok()?)
}

fn pairs_of(sibling: &Sibling) -> Result<Vec<Pair>, ExtractError> {
    let content_type = sibling.meta.content_type.as_deref().unwrap_or_default();
    let mut pairs = if content_type == COUNTER_TYPE {
        let object = Object { clock: Default::default(), siblings: vec![sibling.clone()] };
        match legacy_counter(&object) {
            Some(sum) => extract_data_type(&DataTypeValue::Counter(sum))?,
            None => return Err(ExtractError::NotUtf8),
        }
    } else {
        Extractor::of_media_type(&String::from_utf8_lossy(content_type)).extract(&sibling.value)?
    };
    let tags = sibling.meta.user_meta.iter().map(|(name, value)| (&name[..], &value[..]));
    pairs.extend(extract_tags(tags)?);
    Ok(pairs)
}

fn pairs_of_data_type(present: &PresentVersion) -> Result<Vec<Pair>, ExtractError> {
    let state = state_of(&present.props, &present.object).map_err(|_| ExtractError::NotUtf8)?;
    extract_data_type(&shown(state.value()))
}

fn shown(value: Shown) -> DataTypeValue {
    let members = |members: Vec<bytes::Bytes>| members.iter().map(|member| member.to_vec()).collect();
    match value {
        Shown::Counter(sum) => DataTypeValue::Counter(sum),
        Shown::Set(of_set) => DataTypeValue::Set(members(of_set)),
        Shown::GSet(of_set) => DataTypeValue::Gset(members(of_set)),
        Shown::Hll(estimate) => DataTypeValue::Hll(estimate),
        Shown::Map(fields) => map(fields),
    }
}

fn map(fields: Vec<(ombak_crdt::Field, FieldValue)>) -> DataTypeValue {
    let field = |(field, value): (ombak_crdt::Field, FieldValue)| (field.name.to_vec(), shown_field(value));
    DataTypeValue::Map(fields.into_iter().map(field).collect())
}

fn shown_field(value: FieldValue) -> DataTypeValue {
    match value {
        FieldValue::Counter(sum) => DataTypeValue::Counter(sum),
        FieldValue::Set(members) => DataTypeValue::Set(members.iter().map(|member| member.to_vec()).collect()),
        FieldValue::Register(text) => DataTypeValue::Register(text.to_vec()),
        FieldValue::Flag(is_set) => DataTypeValue::Flag(is_set),
        FieldValue::Map(fields) => map(fields),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_whose_reading_panics_counts_as_one_that_cannot_be_read() {
        assert_eq!(without_panic(|| Some(1)), Some(1));
        assert_eq!(without_panic::<()>(|| panic!("on purpose")), None);
    }
}
