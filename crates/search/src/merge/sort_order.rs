//! The order of documents.

use super::part_answer::Hit;
use super::value_order::compare_values;
use crate::dates::Date;
use crate::request::{RequestError, RequestProblem, SortBy, SortKey, shown};
use crate::schema::{Field, Kind, Schema};
use crate::values::Value;
use std::cmp::Ordering;

/// The order of documents: by its keys, and then by the unique key.
#[derive(Clone, Debug, PartialEq)]
pub struct SortOrder {
    keys: Vec<OrderKey>,
}

/// A key of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// What is compared.
    pub by: SortBy,
    /// Whether the largest comes first.
    pub is_descending: bool,
    /// What the values are.
    pub kind: SortKind,
    /// Where documents without a value come.
    pub missing: Missing,
}

/// What the values of a key are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKind {
    /// [`Value::String`]
    Text,
    /// [`Value::Bool`]
    Bool,
    /// [`Value::Int`]
    Int,
    /// [`Value::Long`]
    Long,
    /// [`Value::Float`], which scores are too.
    Float,
    /// [`Value::Double`]
    Double,
    /// [`Value::Date`]
    Date,
}

/// Where documents without a value come.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// Before all others, in both directions.
    First,
    /// Behind all others, in both directions.
    Last,
    /// Where a value would be that is less than all others. This is how Solr sorts texts and
    /// booleans, if the schema does not say otherwise.
    Least,
    /// Where this value is. This is how Solr sorts numbers and dates.
    As(Value),
}

impl SortOrder {
    /// The order that keys have in a schema. Without keys, the best score comes first.
    ///
    /// # Errors
    /// A field does not exist, or has no values to sort by.
    pub fn new(keys: &[SortKey], schema: &Schema) -> Result<Self, RequestError> {
        let best_first = [SortKey { by: SortBy::Score, is_descending: true }];
        let keys = if keys.is_empty() { &best_first } else { keys };
        let keys: Result<Vec<OrderKey>, RequestProblem> = keys.iter().map(|key| OrderKey::new(key, schema)).collect();
        Ok(Self { keys: keys.map_err(|problem| problem.of("sort"))? })
    }

    /// The keys.
    pub fn keys(&self) -> &[OrderKey] {
        &self.keys
    }

    /// Compares two hits: the one that is less comes first.
    pub fn compare(&self, a: &Hit, b: &Hit) -> Ordering {
        self.compare_keys(&a.sort_values, &b.sort_values).then_with(|| a.id.cmp(&b.id))
    }

    /// Compares what hits have for the keys. What lies behind the end of a list is missing.
    pub(super) fn compare_keys(&self, a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
        self.keys
            .iter()
            .enumerate()
            .map(|(at, key)| key.compare(at_place(a, at), at_place(b, at)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

fn at_place(values: &[Option<Value>], at: usize) -> Option<&Value> {
    values.get(at).and_then(Option::as_ref)
}

impl OrderKey {
    fn new(key: &SortKey, schema: &Schema) -> Result<Self, RequestProblem> {
        let (kind, missing) = match &key.by {
            SortBy::Score => (SortKind::Float, Missing::As(Value::Float(0.0))),
            SortBy::Field(name) => {
                let field = schema.field(name).ok_or_else(|| RequestProblem::UnknownField(shown(name)))?;
                let kind = SortKind::of(field).map_err(|why| RequestProblem::UnfitField { field: shown(name), why })?;
                (kind, Missing::of(field, kind))
            }
        };
        Ok(Self { by: key.by.clone(), is_descending: key.is_descending, kind, missing })
    }

    fn compare(&self, a: Option<&Value>, b: Option<&Value>) -> Ordering {
        let zero = if let Missing::As(zero) = &self.missing { Some(zero) } else { None };
        let order = match (a.or(zero), b.or(zero)) {
            (Some(a), Some(b)) => compare_values(a, b),
            (None, None) => Ordering::Equal,
            (None, Some(_)) => self.compare_missing(),
            (Some(_), None) => self.compare_missing().reverse(),
        };
        if self.is_descending { order.reverse() } else { order }
    }

    /// Compares a missing value with another one, before the direction counts.
    fn compare_missing(&self) -> Ordering {
        match (&self.missing, self.is_descending) {
            (Missing::First, false) | (Missing::Last, true) | (Missing::Least | Missing::As(_), _) => Ordering::Less,
            (Missing::Last, false) | (Missing::First, true) => Ordering::Greater,
        }
    }
}

impl SortKind {
    /// What the values of a field are, or why it has none to sort by.
    fn of(field: &Field) -> Result<Self, &'static str> {
        if !field.properties.is_indexed {
            return Err("is not indexed, so documents cannot be sorted by it");
        }
        if field.properties.is_multi_valued {
            return Err("is multi-valued, so documents cannot be sorted by it");
        }
        Ok(match field.field_type.kind {
            Kind::String => Self::Text,
            Kind::Bool => Self::Bool,
            Kind::Int => Self::Int,
            Kind::Long => Self::Long,
            Kind::Float => Self::Float,
            Kind::Double => Self::Double,
            Kind::Date => Self::Date,
            // Solr takes any of the words.
            Kind::Text { .. } => return Err("is text that is split into words; sort by a string field, such as *_s"),
            Kind::Binary => return Err("has bytes, which have no order"),
            Kind::Location => return Err("has places, which have no order"),
            Kind::Random => return Err("sorts by chance, which is not supported"),
        })
    }

    /// Whether a value is one of this kind.
    pub fn is_of(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (Self::Text, Value::String(_))
                | (Self::Bool, Value::Bool(_))
                | (Self::Int, Value::Int(_))
                | (Self::Long, Value::Long(_))
                | (Self::Float, Value::Float(_))
                | (Self::Double, Value::Double(_))
                | (Self::Date, Value::Date(_))
        )
    }
}

impl Missing {
    /// Where documents without a value in a field come. If the schema says both, they come last, as
    /// in Solr.
    fn of(field: &Field, kind: SortKind) -> Self {
        if field.properties.sorts_missing_last {
            return Self::Last;
        }
        if field.properties.sorts_missing_first {
            return Self::First;
        }
        match kind {
            SortKind::Text | SortKind::Bool => Self::Least,
            SortKind::Int => Self::As(Value::Int(0)),
            SortKind::Long => Self::As(Value::Long(0)),
            SortKind::Float => Self::As(Value::Float(0.0)),
            SortKind::Double => Self::As(Value::Double(0.0)),
            SortKind::Date => Date::from_unix_ms(0).map_or(Self::Least, |epoch| Self::As(Value::Date(epoch))),
        }
    }
}
