//! The order of values.

use crate::values::Value;
use std::cmp::Ordering;

/// Compares values as Solr sorts them: texts by the bytes of UTF-8, `false` before `true`, and
/// numbers as Java does: -0.0 before 0.0, and what is no number behind all others.
///
/// Values of several kinds are not in one field. They have an order too, so that what another node
/// sends cannot break the sorting.
pub fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::String(a) | Value::Text(a), Value::String(b) | Value::Text(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Long(a), Value::Long(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => float(*a).total_cmp(&float(*b)),
        (Value::Double(a), Value::Double(b)) => double(*a).total_cmp(&double(*b)),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Java has one NaN, whose sign does not count.
fn float(number: f32) -> f32 {
    if number.is_nan() { f32::NAN.copysign(1.0) } else { number }
}

fn double(number: f64) -> f64 {
    if number.is_nan() { f64::NAN.copysign(1.0) } else { number }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::String(_) | Value::Text(_) => 0,
        Value::Bool(_) => 1,
        Value::Int(_) => 2,
        Value::Long(_) => 3,
        Value::Float(_) => 4,
        Value::Double(_) => 5,
        Value::Date(_) => 6,
        Value::Bytes(_) => 7,
    }
}

/// A value as the key of a map.
#[derive(Clone, Debug)]
pub(super) struct ByValue(pub(super) Value);

impl Ord for ByValue {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}

impl PartialOrd for ByValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ByValue {}
