//! Dates as Solr has them, and its date math.
//!
//! What it is: instants in milliseconds ([`Date`]), their text, and expressions such as
//! `NOW/DAY-7DAYS` and `2012-01-01T00:00:00Z+1YEAR/MONTH` ([`read_date`]).
//!
//! What it is not: it reads no clock and knows no time zone but UTC, which is Solr's default.
//!
//! Invariants:
//! * A date is in the years -9999 to 9999; an expression that leaves them is an error.
//! * An expression has at most [`MATH_STEPS_MAX`] steps.

mod date;
mod date_math;

pub use date::{Date, YEAR_MAX, YEAR_MIN};
pub use date_math::{BadDate, MATH_STEPS_MAX, read_date};
