//! A document as the library takes it.

use crate::analyzers::Analyzers;
use crate::change::IndexDocument;
use crate::encoded_terms::EncodedTerms;
use crate::layout::{Layout, column_key, existence, number_term, sortable, term_prefix};
use crate::stored_fields;
use ombak_search::document_id::BadDocumentId;
use ombak_search::query::limits::FIELD_BYTES_MAX;
use ombak_search::schema::{Field, Kind, Schema, YZ_FIELDS};
use ombak_search::values::{STRING_BYTES_MAX, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use tantivy::TantivyDocument;
use tantivy::schema::OwnedValue;

/// Bytes of a key in the storage: it is a term of the index.
pub(crate) const KEY_BYTES_MAX: usize = STRING_BYTES_MAX;

/// Makes documents.
pub(crate) struct DocumentMaker<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Schema,
    pub(crate) analyzers: &'a Analyzers,
}

/// The parts of a document, as they grow.
#[derive(Default)]
struct Parts {
    exact: EncodedTerms,
    words: EncodedTerms,
    columns: BTreeMap<String, OwnedValue>,
    /// Where the next text of a field begins.
    positions: HashMap<String, u32>,
    /// Fields of which the document has a value that can be found.
    names: BTreeMap<String, ()>,
}

impl DocumentMaker<'_> {
    /// The document of an object or a sibling.
    pub(crate) fn make(
        &self,
        partition: u32,
        generation: u64,
        key: &[u8],
        document: &IndexDocument,
    ) -> Result<TantivyDocument, BadDocumentId> {
        let own = own_fields(document)?;
        let mut parts = Parts::default();
        let mut stored: Vec<(&str, Vec<&Value>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let values = document.fields.values.iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in values.chain(own.iter().map(|(name, value)| (*name, value))) {
            let Some(field) = self.schema.field(name) else { continue };
            // A query cannot name a longer one.
            if field.properties.is_indexed && name.len() <= FIELD_BYTES_MAX {
                self.index(&mut parts, name, field, value);
            }
            if field.properties.is_stored {
                let place = *places.entry(name).or_insert(stored.len());
                match stored.get_mut(place) {
                    Some((_, values)) => values.push(value),
                    None => stored.push((name, vec![value])),
                }
            }
        }
        for name in parts.names.keys() {
            parts.exact.push(0, &existence(name), "");
        }
        let mut out = TantivyDocument::default();
        out.add_bytes(self.layout.key, key);
        out.add_u64(self.layout.partition, u64::from(partition));
        out.add_u64(self.layout.generation, generation);
        if let Some(at) = document.expires_secs {
            out.add_u64(self.layout.expires, u64::from(at));
        }
        out.add_text(self.layout.exact, parts.exact.as_str());
        out.add_text(self.layout.words, parts.words.as_str());
        out.add_object(self.layout.columns, parts.columns);
        out.add_bytes(self.layout.stored, &stored_fields::to_bytes(&stored));
        Ok(out)
    }

    fn index(&self, parts: &mut Parts, name: &str, field: &Field, value: &Value) {
        if let Kind::Text { .. } = field.field_type.kind {
            if let Value::Text(text) = value {
                self.index_text(parts, name, field, text);
            }
            return;
        }
        let Some((term, column)) = term_and_column(value) else { return };
        parts.exact.push(0, &term_prefix(name), &term);
        parts.add_to_column(name, column);
        parts.names.insert(name.to_owned(), ());
    }

    fn index_text(&self, parts: &mut Parts, name: &str, field: &Field, text: &str) {
        let (tokens, end) = self.analyzers.document_terms(&field.field_type, text);
        let prefix = term_prefix(name);
        let from = parts.positions.get(name).copied().unwrap_or(0);
        for token in tokens {
            // A longer term than Lucene takes is left out; here the whole text would be refused.
            if token.text.len() > STRING_BYTES_MAX {
                continue;
            }
            let position = from.saturating_add(token.position);
            parts.words.push(position, &prefix, &token.text);
            parts.names.entry(name.to_owned()).or_default();
        }
        let next = from.saturating_add(end).saturating_add(field.field_type.position_increment_gap);
        parts.positions.insert(name.to_owned(), next);
    }
}

impl Parts {
    fn add_to_column(&mut self, name: &str, value: OwnedValue) {
        let values = self.columns.entry(column_key(name)).or_insert_with(|| OwnedValue::Array(Vec::new()));
        if let OwnedValue::Array(values) = values {
            values.push(value);
        }
    }
}

/// The term of a value that is one, and what its column has; `None` for values that are not found.
pub(crate) fn term_and_column(value: &Value) -> Option<(String, OwnedValue)> {
    Some(match value {
        Value::String(text) => (text.clone(), OwnedValue::Str(text.clone())),
        Value::Bool(is_true) => (bool_term(*is_true).to_owned(), OwnedValue::I64(i64::from(*is_true))),
        Value::Text(_) | Value::Bytes(_) => return None,
        number => {
            let number = sortable_of(number)?;
            (number_term(number), OwnedValue::I64(number))
        }
    })
}

/// Solr's terms of booleans.
pub(crate) fn bool_term(is_true: bool) -> &'static str {
    if is_true { "T" } else { "F" }
}

/// A number or date as an integer with the same order.
pub(crate) fn sortable_of(value: &Value) -> Option<i64> {
    Some(match value {
        Value::Int(number) => i64::from(*number),
        Value::Long(number) => *number,
        Value::Float(number) => sortable(f64::from(*number)),
        Value::Double(number) => sortable(*number),
        Value::Date(date) => date.unix_ms(),
        Value::Bool(is_true) => i64::from(*is_true),
        Value::String(_) | Value::Text(_) | Value::Bytes(_) => return None,
    })
}

/// The fields that Riak needs. Those that are told come first, in their order.
fn own_fields(document: &IndexDocument) -> Result<Vec<(&'static str, Value)>, BadDocumentId> {
    let id = &document.id;
    let partition = id.partition.to_string();
    let mut own = vec![
        ("_yz_id", id.to_text()?),
        ("_yz_rk", shown(&id.key)),
        ("_yz_rt", shown(&id.bucket_type)),
        ("_yz_rb", shown(&id.bucket)),
        // Riak's entropy data has the same parts and a hash; anti-entropy does not need it here.
        ("_yz_ed", format!("1 {partition} {}", id.to_text()?)),
        ("_yz_pn", partition.clone()),
        ("_yz_fpn", partition),
    ];
    own.extend(document.vtag.clone().map(|vtag| ("_yz_vtag", vtag)));
    if document.has_error {
        own.push(("_yz_err", String::from("1")));
    }
    debug_assert!(own.iter().all(|(name, _)| YZ_FIELDS.iter().any(|(known, _)| known == name)));
    let fits = |text: &String| text.len() <= STRING_BYTES_MAX;
    Ok(own.into_iter().filter(|(_, text)| fits(text)).map(|(name, text)| (name, Value::String(text))).collect())
}

/// A name as text. Bytes that are not UTF-8 are written as in ids, as `%xFF`.
fn shown(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a text does not fail.
            let _ = write!(text, "%x{byte:02X}");
        }
    }
    text
}
