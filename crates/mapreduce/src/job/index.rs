//! Index queries as inputs.

use super::inputs::IndexQuery;
use crate::term::order;
use bytes::Bytes;
use ombak_types::etf::Term;
use ombak_types::object::BadIndexEntry;
use ombak_types::{Bucket, IndexEntry, IndexTerm};

impl IndexQuery {
    /// Creates a query from a field and the terms at its ends, in any order: texts, or numbers for
    /// integers. The error is Riak's: the list of what is wrong with the terms.
    pub(super) fn new(bucket: Bucket, field: &[u8], one: &Term, other: &Term) -> Result<Self, Term> {
        let field = field.to_ascii_lowercase();
        match (term(&field, one), term(&field, other)) {
            // Riak sorts them.
            (Ok(one), Ok(other)) => {
                let (low, high) = if one <= other { (one, other) } else { (other, one) };
                Ok(Self { bucket, field: field.into(), low, high })
            }
            (one, other) => {
                let mut reasons: Vec<Term> = one.err().into_iter().chain(other.err()).collect();
                reasons.sort_by(order);
                reasons.dedup();
                Err(Term::List(reasons))
            }
        }
    }
}

fn term(field: &[u8], value: &Term) -> Result<IndexTerm, Term> {
    let failed = || {
        let what = Term::pair(Term::binary(field), value.clone());
        Term::pair(Term::atom("field_parsing_failed"), what)
    };
    let text = match value {
        Term::Int(n) => Bytes::from(n.to_string()),
        Term::Big(n) => Bytes::from(n.to_string()),
        other => other.as_text().ok_or_else(failed)?,
    };
    if matches!(field, b"$key" | b"$bucket") {
        return Ok(IndexTerm::Bin(text));
    }
    IndexEntry::parse(field, &text).map(|entry| entry.term).map_err(|error| match error {
        BadIndexEntry::UnknownFieldType => Term::pair(Term::atom("unknown_field_type"), Term::binary(field)),
        BadIndexEntry::NotAnInteger => failed(),
    })
}
