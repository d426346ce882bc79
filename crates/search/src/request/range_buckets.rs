//! The ranges of a range facet.

use super::facet_request::RangeFacet;
use super::limits::FACET_RANGES_MAX;
use super::request_error::{RequestError, RequestProblem, shown};
use crate::dates::{Date, read_date};
use crate::extract::Extracted;
use crate::schema::{Field, Kind, Schema};
use crate::values::{BadValue, Value, value_of};

/// The ranges of a range facet. A range has the values from its bound up to the next one, which is
/// not in it any more.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeBuckets {
    /// The bounds, in their order: one more than ranges, or one if there is no range.
    pub bounds: Vec<Value>,
    /// How long a range is.
    pub gap: Gap,
}

/// How long a range is.
#[derive(Clone, Debug, PartialEq)]
pub enum Gap {
    /// A number of the field's kind.
    Number(Value),
    /// Steps of date math.
    Steps(String),
}

impl RangeBuckets {
    /// How many ranges there are.
    pub fn count(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }
}

impl RangeFacet {
    /// The ranges of the facet in a schema. `now` is for date math.
    ///
    /// # Errors
    /// The field has no numbers or dates, a bound or the gap does not fit it, or there are too many
    /// ranges.
    pub fn buckets(&self, schema: &Schema, now: Date) -> Result<RangeBuckets, RequestError> {
        let problem = |problem: RequestProblem| problem.of("facet.range");
        let field =
            schema.field(&self.field).ok_or_else(|| problem(RequestProblem::UnknownField(shown(&self.field))))?;
        let unfit = |why| problem(RequestProblem::UnfitField { field: shown(&self.field), why });
        if !field.properties.is_indexed {
            return Err(unfit("is not indexed"));
        }
        let is_date = match field.field_type.kind {
            Kind::Int | Kind::Long | Kind::Float | Kind::Double => false,
            Kind::Date => true,
            _ => return Err(unfit("has neither numbers nor dates")),
        };
        let start = bound(field, "facet.range.start", &self.start, now)?;
        let end = bound(field, "facet.range.end", &self.end, now)?;
        let gap = if is_date {
            Gap::Steps(self.gap.clone())
        } else {
            Gap::Number(bound(field, "facet.range.gap", &self.gap, now)?)
        };
        if is_before(&end, &start) {
            return Err(RequestProblem::EndBeforeStart.of("facet.range.end"));
        }
        let bounds = self.bounds(start, &end, &gap).map_err(|problem| problem.of("facet.range.gap"))?;
        Ok(RangeBuckets { bounds, gap })
    }

    /// Adds the gap until the end is reached. Unless the end is hard, the last range is as long as
    /// the others, and ends behind it.
    fn bounds(&self, start: Value, end: &Value, gap: &Gap) -> Result<Vec<Value>, RequestProblem> {
        let mut bounds = vec![start];
        while let Some(low) = bounds.last()
            && is_before(low, end)
        {
            if bounds.len() > FACET_RANGES_MAX {
                return Err(RequestProblem::TooMany { most: FACET_RANGES_MAX });
            }
            let high = add(low, gap).filter(|high| is_before(low, high)).ok_or(RequestProblem::NoGap)?;
            let is_last = is_before(end, &high);
            bounds.push(if is_last && self.has_hard_end { end.clone() } else { high });
        }
        Ok(bounds)
    }
}

fn bound(field: &Field, parameter: &str, text: &str, now: Date) -> Result<Value, RequestError> {
    let value = value_of(field, &Extracted::Text(text.to_owned()), now)
        .map_err(|bad| RequestProblem::Value(bad).of(parameter))?;
    let is_finite = match &value {
        Some(Value::Float(number)) => number.is_finite(),
        Some(Value::Double(number)) => number.is_finite(),
        _ => true,
    };
    value.filter(|_| is_finite).ok_or_else(|| RequestProblem::Value(BadValue::Number).of(parameter))
}

/// The value behind another one; `None` if there is none or the gap is none.
fn add(low: &Value, gap: &Gap) -> Option<Value> {
    Some(match (low, gap) {
        (Value::Int(low), Gap::Number(Value::Int(gap))) => Value::Int(low.checked_add(*gap)?),
        (Value::Long(low), Gap::Number(Value::Long(gap))) => Value::Long(low.checked_add(*gap)?),
        (Value::Float(low), Gap::Number(Value::Float(gap))) => Value::Float(low + gap),
        (Value::Double(low), Gap::Number(Value::Double(gap))) => Value::Double(low + gap),
        (Value::Date(low), Gap::Steps(steps)) if steps.starts_with(['+', '-', '/']) => {
            Value::Date(read_date(&format!("{low}{steps}"), *low).ok()?)
        }
        _ => return None,
    })
}

/// Whether a value is less than another one of the same kind.
fn is_before(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a < b,
        (Value::Long(a), Value::Long(b)) => a < b,
        (Value::Float(a), Value::Float(b)) => a < b,
        (Value::Double(a), Value::Double(b)) => a < b,
        (Value::Date(a), Value::Date(b)) => a < b,
        _ => false,
    }
}
