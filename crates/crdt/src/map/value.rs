//! What a client sees of a map.

use super::content::{self, Content};
use super::fields::Fields;
use crate::field::Field;
use bytes::Bytes;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// The sum of a counter.
    Counter(i128),
    /// The value of a register.
    Register(Bytes),
    /// The fields of a map.
    Map(Vec<(Field, FieldValue)>),
    /// Whether a flag is enabled.
    Flag(bool),
    /// The members of a set, in the order of their bytes.
    Set(Vec<Bytes>),
}

pub(super) fn of_fields(fields: &Fields) -> Vec<(Field, FieldValue)> {
    fields.iter().map(|(field, entry)| (field.clone(), of_content(&entry.content))).collect()
}

fn of_content(content: &Content) -> FieldValue {
    match content {
        Content::Counter(tallies) => FieldValue::Counter(content::sum(tallies)),
        Content::Register(values) => {
            FieldValue::Register(content::winner(values).map(|winner| winner.value.clone()).unwrap_or_default())
        }
        Content::Map(fields) => FieldValue::Map(of_fields(fields)),
        Content::Flag(dots) => FieldValue::Flag(!dots.is_empty()),
        Content::Set(members) => FieldValue::Set(members.names().cloned().collect()),
    }
}
