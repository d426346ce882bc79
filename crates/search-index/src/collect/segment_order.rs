//! The order of documents inside a segment.

use crate::document::sortable_of;
use crate::error::IndexError;
use crate::layout::{column_name, from_sortable, sortable};
use crate::query::Execution;
use ombak_search::dates::Date;
use ombak_search::merge::{CursorMark, Missing, OrderKey, SortKind, SortOrder};
use ombak_search::request::SortBy;
use ombak_search::schema::UNIQUE_KEY;
use ombak_search::values::Value;
use tantivy::columnar::{Column, StrColumn, TermOrdHit};
use tantivy::{DocId, i64_to_u64};

/// A key of a document as a number: the less one comes first. The upper half says whether a value
/// is missing and comes before (0) or behind (2) all others, or is there (1).
pub(crate) type Key = u128;

const BEFORE: Key = 0;
const BEHIND: Key = 2 << 64;

/// The order of documents inside a segment.
pub(crate) struct SegmentOrder {
    keys: Vec<SegmentKey>,
    /// The unique key of documents.
    ids: Option<StrColumn>,
    /// The keys of the cursor's document.
    cursor: Option<Vec<Key>>,
}

struct SegmentKey {
    column: KeyColumn,
    kind: SortKind,
    is_descending: bool,
    /// The key of a document without a value.
    missing: Key,
}

enum KeyColumn {
    Score,
    /// No document of the segment has a value.
    None,
    Strings(StrColumn),
    Numbers(Column<i64>),
}

impl SegmentOrder {
    pub(crate) fn open(order: &SortOrder, cursor: Option<&CursorMark>, on: &Execution<'_>) -> Result<Self, IndexError> {
        let keys = order.keys().iter().map(|key| SegmentKey::open(key, on)).collect::<Result<Vec<_>, _>>()?;
        let cursor = cursor.map(|mark| {
            let values = keys.iter().enumerate().map(|(at, key)| match mark.values().get(at) {
                Some(Some(value)) => key.key_of(value),
                _ => Ok(key.missing),
            });
            values.collect::<Result<Vec<_>, IndexError>>()
        });
        Ok(Self { keys, ids: on.string_column(&column_name(UNIQUE_KEY))?, cursor: cursor.transpose()? })
    }

    /// The keys of a document; the space is used again.
    pub(crate) fn keys_into(&self, document: DocId, score: f32, keys: &mut Vec<Key>) {
        keys.clear();
        keys.extend(self.keys.iter().map(|key| key.key(document, score)));
    }

    /// Whether keys come behind the document of the cursor, if there is one.
    pub(crate) fn is_behind_cursor(&self, keys: &[Key]) -> bool {
        self.cursor.as_ref().is_none_or(|cursor| keys > &cursor[..])
    }

    /// The number of the unique key of a document, by which equal documents are sorted.
    pub(crate) fn id_number(&self, document: DocId) -> u64 {
        self.ids.as_ref().and_then(|ids| ids.ords().first(document)).unwrap_or(u64::MAX)
    }

    /// The unique keys with numbers.
    pub(crate) fn ids(&self, numbers: &[u64]) -> Result<Vec<String>, IndexError> {
        let Some(ids) = &self.ids else { return Ok(vec![String::new(); numbers.len()]) };
        texts_of(ids, numbers)
    }

    /// The values of documents for the keys.
    pub(crate) fn values(&self, documents: &[(DocId, f32)]) -> Result<Vec<Vec<Option<Value>>>, IndexError> {
        let mut values = vec![Vec::with_capacity(self.keys.len()); documents.len()];
        for key in &self.keys {
            for (values, value) in values.iter_mut().zip(key.values(documents)?) {
                values.push(value);
            }
        }
        Ok(values)
    }
}

/// The texts of numbers of a column, in their order. Texts lie in compressed blocks, so neighbours
/// are read together.
fn texts_of(column: &StrColumn, numbers: &[u64]) -> Result<Vec<String>, IndexError> {
    let mut places: Vec<(u64, usize)> = numbers.iter().copied().zip(0..).collect();
    places.sort_unstable();
    let sorted: Vec<u64> = places.iter().map(|(number, _)| *number).collect();
    let mut texts = vec![String::new(); numbers.len()];
    let mut places = places.into_iter();
    let are_all_there = column.dictionary().sorted_ords_to_term_cb(&sorted, |text| {
        if let Some(place) = places.next().and_then(|(_, place)| texts.get_mut(place)) {
            *place = String::from_utf8_lossy(text).into_owned();
        }
    })?;
    if are_all_there { Ok(texts) } else { Err(IndexError::Damaged(String::from("a column has no text for a number"))) }
}

impl SegmentKey {
    fn open(key: &OrderKey, on: &Execution<'_>) -> Result<Self, IndexError> {
        let column = match &key.by {
            SortBy::Score => KeyColumn::Score,
            SortBy::Field(name) if key.kind == SortKind::Text => {
                on.string_column(&column_name(name))?.map_or(KeyColumn::None, KeyColumn::Strings)
            }
            SortBy::Field(name) => on.number_column(&column_name(name))?.map_or(KeyColumn::None, KeyColumn::Numbers),
        };
        let mut out = Self { column, kind: key.kind, is_descending: key.is_descending, missing: BEFORE };
        out.missing = match (&key.missing, key.is_descending) {
            (Missing::First, _) | (Missing::Least, false) => BEFORE,
            (Missing::Last, _) | (Missing::Least, true) => BEHIND,
            (Missing::As(value), _) => out.key_of(value)?,
        };
        Ok(out)
    }

    fn directed(&self, ascending: u64) -> Key {
        (1 << 64) | Key::from(if self.is_descending { !ascending } else { ascending })
    }

    fn key(&self, document: DocId, score: f32) -> Key {
        let ascending = match &self.column {
            KeyColumn::Score => Some(i64_to_u64(sortable(f64::from(score)))),
            KeyColumn::None => None,
            KeyColumn::Strings(column) => column.ords().first(document).map(odd),
            KeyColumn::Numbers(column) => column.first(document).map(i64_to_u64),
        };
        ascending.map_or(self.missing, |ascending| self.directed(ascending))
    }

    /// The key that a document with a value would have. A text that is not in the segment lies
    /// between the numbers of those that are.
    fn key_of(&self, value: &Value) -> Result<Key, IndexError> {
        let ascending = match (&self.column, value) {
            (KeyColumn::Strings(column), Value::String(text) | Value::Text(text)) => {
                match column.dictionary().term_ord_or_next(text)? {
                    TermOrdHit::Exact(number) => odd(number),
                    TermOrdHit::Next(number) => number.saturating_mul(2),
                }
            }
            (_, value) => sortable_of(value).map(i64_to_u64).unwrap_or_default(),
        };
        Ok(self.directed(ascending))
    }

    /// The values of documents.
    fn values(&self, documents: &[(DocId, f32)]) -> Result<Vec<Option<Value>>, IndexError> {
        Ok(match &self.column {
            KeyColumn::Score => documents.iter().map(|(_, score)| Some(Value::Float(*score))).collect(),
            KeyColumn::None => vec![None; documents.len()],
            KeyColumn::Strings(column) => {
                let numbers: Vec<Option<u64>> =
                    documents.iter().map(|(document, _)| column.ords().first(*document)).collect();
                let there: Vec<u64> = numbers.iter().flatten().copied().collect();
                let mut texts = texts_of(column, &there)?.into_iter();
                numbers.iter().map(|number| number.and_then(|_| texts.next()).map(Value::String)).collect()
            }
            KeyColumn::Numbers(column) => {
                let value = |(document, _): &(DocId, f32)| number_value(self.kind, column.first(*document)?);
                documents.iter().map(value).collect()
            }
        })
    }
}

/// Numbers of texts are odd, so that there is room between them.
fn odd(number: u64) -> u64 {
    number.saturating_mul(2).saturating_add(1)
}

/// The value of a number in a column; `None` for what no value makes.
pub(crate) fn number_value(kind: SortKind, number: i64) -> Option<Value> {
    Some(match kind {
        SortKind::Text => return None,
        SortKind::Bool => Value::Bool(number != 0),
        SortKind::Int => Value::Int(i32::try_from(number).ok()?),
        SortKind::Long => Value::Long(number),
        // It was widened from this type, so nothing is lost.
        SortKind::Float => Value::Float(from_sortable(number) as f32),
        SortKind::Double => Value::Double(from_sortable(number)),
        SortKind::Date => Value::Date(Date::from_unix_ms(number)?),
    })
}
