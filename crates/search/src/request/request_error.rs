//! Why parameters are no request.

use super::limits::SHOWN_CHARS_MAX;
use crate::query::QueryError;
use crate::values::BadValue;

/// A request cannot be carried out: which parameter is why, and what would be right.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{parameter}: {problem}")]
pub struct RequestError {
    /// The name of the parameter, cut if it is long.
    pub parameter: String,
    /// What is wrong with it.
    pub problem: RequestProblem,
}

/// What is wrong with a parameter.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestProblem {
    /// Ombak does not have it.
    #[error("this parameter is not supported; leave it out")]
    NotSupported,
    /// Ombak has it with some values only.
    #[error("{given} is not supported; {wanted} is")]
    NotThisValue {
        /// The value, cut.
        given: String,
        /// The values that are.
        wanted: &'static str,
    },
    /// It has several values where one counts.
    #[error("it has several values; give one")]
    Repeated,
    /// It is no whole number.
    #[error("{given} is no whole number; a number from {least} to {most} is needed")]
    NotNumber {
        /// The value, cut.
        given: String,
        /// The least that it can be.
        least: i64,
        /// The most that it can be.
        most: i64,
    },
    /// It is a whole number that is too small or too large.
    #[error("{given} is out of range; a number from {least} to {most} is needed{hint}")]
    OutOfRange {
        /// The value.
        given: i64,
        /// The least that it can be.
        least: i64,
        /// The most that it can be.
        most: i64,
        /// Another way.
        hint: &'static str,
    },
    /// It is no boolean.
    #[error("{0} is neither true nor false")]
    NotBoolean(String),
    /// There are too many of it.
    #[error("there are more than {most}, which is the most that a request can have")]
    TooMany {
        /// How many there can be.
        most: usize,
    },
    /// It is too long, alone or with those before it.
    #[error("it has more than {most} bytes, which is the most")]
    TooLong {
        /// How many bytes there can be.
        most: usize,
    },
    /// A value is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// A query or a filter cannot be read.
    #[error("{0}")]
    Query(#[from] QueryError),
    /// Solr's local parameters, which change what the rest of a value means.
    #[error("local parameters {{!...}} are not supported")]
    LocalParameters,
    /// A part of `sort` is not a field and a direction.
    #[error(
        "{0} is no order; write FIELD asc or FIELD desc, with commas between several, such as age_i asc, score desc"
    )]
    NoOrder(String),
    /// A part of `sort` is a function, or Lucene's number of a document.
    #[error("cannot sort by {0}: only fields and score are supported")]
    NoSortField(String),
    /// A part of `fl` is more than a name.
    #[error("{0} is no name of a field; functions, [transformers] and new names (new:old) are not supported")]
    NoFieldName(String),
    /// The schema has no such field.
    #[error("the schema has no field {0}")]
    UnknownField(String),
    /// A field cannot be used as the parameter asks.
    #[error("field {field} {why}")]
    UnfitField {
        /// The field, cut.
        field: String,
        /// Why it cannot be used.
        why: &'static str,
    },
    /// A cursor is used with a start.
    #[error("a cursor begins behind the document that it names; leave out start, or give 0")]
    CursorWithStart,
    /// A cursor is used with an order that leaves documents equal.
    #[error("a cursor needs an order in which no documents are equal; add _yz_id asc to sort")]
    CursorWithoutKey,
    /// A cursor is used with a limit of time.
    #[error("a cursor cannot be used with timeAllowed, because it would pass over what was not found in time")]
    CursorWithTime,
    /// A cursor is none, or belongs to another order.
    #[error("it is neither * nor the nextCursorMark of an answer with the same sort")]
    BadCursor,
    /// A parameter is needed, because another one is there.
    #[error("it is needed with {with}")]
    Missing {
        /// The parameter that needs it.
        with: &'static str,
    },
    /// A value does not fit the field that it is for.
    #[error("{0}")]
    Value(#[from] BadValue),
    /// A gap that does not lead from the start to the end.
    #[error("a gap leads from the start towards the end, such as 10 for numbers and +1DAY for dates")]
    NoGap,
    /// A range that ends before it starts.
    #[error("the end comes before the start")]
    EndBeforeStart,
}

impl RequestProblem {
    /// The error of a parameter.
    pub fn of(self, parameter: &str) -> RequestError {
        RequestError { parameter: shown(parameter), problem: self }
    }
}

/// A stranger's text as errors repeat it.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
