//! Index queries as inputs.

use super::inputs::IndexQuery;
use bytes::Bytes;
use ombak_types::etf::Term;
use ombak_types::object::BadIndexEntry;
use ombak_types::{Bucket, IndexEntry, IndexTerm};

impl IndexQuery {
    /// Creates a query from a field and terms of a request: texts, or numbers for integers. The
    /// error is Riak's text.
    pub(super) fn new(bucket: Bucket, field: &[u8], low: &Term, high: &Term) -> Result<Self, String> {
        Ok(Self { bucket, field: field.to_ascii_lowercase().into(), low: term(field, low)?, high: term(field, high)? })
    }
}

fn term(field: &[u8], value: &Term) -> Result<IndexTerm, String> {
    let text = match value {
        Term::Int(n) => Bytes::from(n.to_string()),
        Term::Big(n) => Bytes::from(n.to_string()),
        other => other.as_text().ok_or_else(|| failed("field_parsing_failed", field, other))?,
    };
    if matches!(field, b"$key" | b"$bucket") {
        return Ok(IndexTerm::Bin(text));
    }
    IndexEntry::parse(field, &text).map(|entry| entry.term).map_err(|error| match error {
        BadIndexEntry::UnknownFieldType => format!("[{{unknown_field_type,{}}}]\n", Term::binary(field)),
        BadIndexEntry::NotAnInteger => failed("field_parsing_failed", field, value),
    })
}

fn failed(what: &str, field: &[u8], value: &Term) -> String {
    let value: String = value.to_string().chars().take(200).collect();
    format!("[{{{what},{{{},{value}}}}}]\n", Term::binary(field))
}
