//! A value of a field.

use super::bad_value::BadValue;
use crate::dates::{Date, read_date};
use crate::extract::Extracted;
use crate::schema::{Field, Kind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// Bytes of a string that is searched: Lucene indexes no longer term.
pub const STRING_BYTES_MAX: usize = 32_766;

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a string or place: one term.
    String(String),
    /// Of a text field: still to be split into terms.
    Text(String),
    /// An integer of 32 bits.
    Int(i32),
    /// An integer of 64 bits.
    Long(i64),
    /// A number of 32 bits. It can be infinite, or none (`NaN`).
    Float(f32),
    /// A number of 64 bits. It can be infinite, or none (`NaN`).
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// An instant.
    Date(Date),
    /// Bytes, which are not searched.
    Bytes(Vec<u8>),
}

/// The value that a text or a boolean is in a field, as Solr reads it; `None` in a field that keeps
/// no values. `now` is for date math. The words and bounds of a query are read in the same way.
///
/// # Errors
/// It is no value of the field's kind.
pub fn value_of(field: &Field, extracted: &Extracted, now: Date) -> Result<Option<Value>, BadValue> {
    let text = match extracted {
        Extracted::Text(text) => Cow::Borrowed(text.as_str()),
        Extracted::Bool(is_true) => Cow::Owned(is_true.to_string()),
    };
    let keeps = field.properties.is_indexed || field.properties.is_stored;
    if !keeps {
        return Ok(None);
    }
    let value = match &field.field_type.kind {
        Kind::Random => return Ok(None),
        Kind::String => Value::String(string(field, text)?),
        Kind::Location => Value::String(string(field, Cow::Owned(place(&text)?))?),
        Kind::Text { .. } => Value::Text(text.into_owned()),
        Kind::Int => Value::Int(text.parse().map_err(|_| BadValue::Int)?),
        Kind::Long => Value::Long(text.parse().map_err(|_| BadValue::Long)?),
        Kind::Float => Value::Float(number(&text)?.parse().map_err(|_| BadValue::Number)?),
        Kind::Double => Value::Double(number(&text)?.parse().map_err(|_| BadValue::Number)?),
        // Solr looks at the first character only.
        Kind::Bool => Value::Bool(text.starts_with(['1', 't', 'T'])),
        Kind::Date => Value::Date(read_date(&text, now)?),
        Kind::Binary => Value::Bytes(STANDARD.decode(text.as_bytes()).map_err(|_| BadValue::Bytes)?),
    };
    Ok(Some(value))
}

fn string(field: &Field, text: Cow<'_, str>) -> Result<String, BadValue> {
    if field.properties.is_indexed && text.len() > STRING_BYTES_MAX {
        return Err(BadValue::TooLong);
    }
    Ok(text.into_owned())
}

/// The text of a number in Java, as one of Rust.
fn number(text: &str) -> Result<&str, BadValue> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.trim_start_matches(['+', '-']);
    if matches!(unsigned, "NaN" | "Infinity") {
        return Ok(text);
    }
    // Java allows the letter of the type behind the number. Rust's other names for no number and an
    // infinite one are not Java's.
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') { Ok(digits) } else { Err(BadValue::Number) }
}

/// A place: two numbers with a comma between them. What lies around them is left out.
fn place(text: &str) -> Result<String, BadValue> {
    let (latitude, longitude) = text.split_once(',').ok_or(BadValue::Place)?;
    let (latitude, longitude) = (latitude.trim(), longitude.trim());
    let within = |number: &str, most: f64| number.parse::<f64>().is_ok_and(|number| number.abs() <= most);
    if within(latitude, 90.0) && within(longitude, 180.0) {
        Ok(format!("{latitude},{longitude}"))
    } else {
        Err(BadValue::Place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dates::BadDate;
    use crate::schema::default_schema;

    fn read(name: &str, text: &str) -> Result<Option<Value>, BadValue> {
        let schema = default_schema().unwrap();
        let now = Date::from_unix_ms(86_400_000).unwrap();
        value_of(schema.field(name).unwrap(), &Extracted::Text(text.to_owned()), now)
    }

    #[test]
    fn texts_become_values_of_their_field() {
        for (name, text, value) in [
            ("a_s", "x", Value::String("x".into())),
            ("a_s", "", Value::String(String::new())),
            ("a_t", "x y", Value::Text("x y".into())),
            ("a_i", "-7", Value::Int(-7)),
            ("a_i", "+7", Value::Int(7)),
            ("a_l", "9223372036854775807", Value::Long(i64::MAX)),
            ("a_f", "3.25", Value::Float(3.25)),
            ("a_f", " 3.5f ", Value::Float(3.5)),
            ("a_f", "1e99", Value::Float(f32::INFINITY)),
            ("a_d", "1e99", Value::Double(1e99)),
            ("a_d", "-Infinity", Value::Double(f64::NEG_INFINITY)),
            ("a_d", ".5", Value::Double(0.5)),
            ("a_b", "true", Value::Bool(true)),
            ("a_b", "1", Value::Bool(true)),
            ("a_b", "T", Value::Bool(true)),
            ("a_b", "yes", Value::Bool(false)),
            ("a_b", "", Value::Bool(false)),
            ("a_dt", "1970-01-01T00:00:00.5Z", Value::Date(Date::from_unix_ms(500).unwrap())),
            ("a_dt", "NOW-1DAY", Value::Date(Date::from_unix_ms(0).unwrap())),
            ("a_p", "52.5, 13.4", Value::String("52.5,13.4".into())),
        ] {
            assert_eq!(read(name, text), Ok(Some(value)), "{name} {text}");
        }
        assert!(matches!(read("a_d", "NaN"), Ok(Some(Value::Double(n))) if n.is_nan()));
        for name in ["unknown", "a_ig", "random_1"] {
            assert_eq!(read(name, "x"), Ok(None), "{name}");
        }
    }

    #[test]
    fn booleans_are_texts_elsewhere() {
        let schema = default_schema().unwrap();
        let now = Date::from_unix_ms(0).unwrap();
        let read = |name: &str| value_of(schema.field(name).unwrap(), &Extracted::Bool(true), now);
        assert_eq!(read("a_b"), Ok(Some(Value::Bool(true))));
        assert_eq!(read("a_s"), Ok(Some(Value::String("true".into()))));
        assert_eq!(read("a_i"), Err(BadValue::Int));
    }

    #[test]
    fn what_is_no_value_is_an_error() {
        for (name, text, bad) in [
            ("a_i", "1.0", BadValue::Int),
            ("a_i", "", BadValue::Int),
            ("a_i", " 1", BadValue::Int),
            ("a_i", "2147483648", BadValue::Int),
            ("a_l", "9223372036854775808", BadValue::Long),
            ("a_f", "x", BadValue::Number),
            ("a_f", "inf", BadValue::Number),
            ("a_f", "nan", BadValue::Number),
            ("a_f", "", BadValue::Number),
            ("a_f", "--1", BadValue::Number),
            ("a_dt", "today", BadValue::Date(BadDate::NoDate)),
            ("a_p", "52.5", BadValue::Place),
            ("a_p", "91,0", BadValue::Place),
            ("a_p", "nan,0", BadValue::Place),
            ("a_s", &"x".repeat(STRING_BYTES_MAX + 1), BadValue::TooLong),
        ] {
            assert_eq!(read(name, text), Err(bad), "{name} {text}");
        }
    }
}
