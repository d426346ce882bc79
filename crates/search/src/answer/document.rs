//! A document of an answer.

use crate::values::Value;

/// A document of an answer, with the fields that are told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The fields, in the order in which they are told. Riak tells its own ones last: `_yz_id`,
    /// `_yz_rk`, `_yz_rt` and `_yz_rb`.
    pub fields: Vec<(String, FieldValues)>,
    /// How well the document fits the query, if that is told. It comes behind the fields.
    pub score: Option<f32>,
}

/// The values of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValues {
    /// Of a field that is not multi-valued.
    One(Value),
    /// Of a multi-valued field, even if there is one value.
    Many(Vec<Value>),
}

impl FieldValues {
    /// The values.
    pub fn as_slice(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}
