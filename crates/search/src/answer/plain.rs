//! Values that have no parts.

use super::numbers::{double_text, float_text};
use crate::dates::Date;
use crate::values::Value;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// A value that has no parts.
#[derive(Clone, Debug)]
pub(super) enum Plain<'a> {
    Text(Cow<'a, str>),
    Int(i64),
    Long(i64),
    Float(f32),
    Double(f64),
    Bool(bool),
    Date(Date),
}

impl<'a> Plain<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::String(text) | Value::Text(text) => Self::text(text),
            Value::Int(number) => Self::Int(i64::from(*number)),
            Value::Long(number) => Self::Long(*number),
            Value::Float(number) => Self::Float(*number),
            Value::Double(number) => Self::Double(*number),
            Value::Bool(is_true) => Self::Bool(*is_true),
            Value::Date(date) => Self::Date(*date),
            Value::Bytes(bytes) => Self::Text(Cow::Owned(STANDARD.encode(bytes))),
        }
    }

    /// A count: Solr has it in 32 bits if they are enough, which only XML shows.
    pub(super) fn count(count: u64) -> Self {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if i32::try_from(count).is_ok() { Self::Int(count) } else { Self::Long(count) }
    }

    /// The text, without the quotes and escapes of a form.
    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Int(number) | Self::Long(number) => Cow::Owned(number.to_string()),
            Self::Float(number) => Cow::Owned(float_text(number)),
            Self::Double(number) => Cow::Owned(double_text(number)),
            Self::Bool(is_true) => Cow::Borrowed(if is_true { "true" } else { "false" }),
            Self::Date(date) => Cow::Owned(date.to_string()),
        }
    }
}

/// The text of a value, as the names of facets have it.
pub fn text_of(value: &Value) -> Cow<'_, str> {
    Plain::of(value).into_text()
}
