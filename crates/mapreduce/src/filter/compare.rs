//! Comparisons of a value with values of the request, in Erlang's order of terms.

use crate::term::compare;
use ombak_types::etf::Term;

/// A comparison.
#[derive(Clone, Debug)]
pub(super) enum Comparison {
    Greater(Term),
    Less(Term),
    GreaterOrEqual(Term),
    LessOrEqual(Term),
    /// Lower and upper bound, and whether these belong to the range.
    Between(Term, Term, bool),
    /// Identical: the number 1 is not 1.0.
    Equal(Term),
    NotEqual(Term),
}

impl Comparison {
    /// Whether the comparison holds for a value.
    pub(super) fn holds(&self, value: &Term) -> bool {
        match self {
            Self::Greater(bound) => compare(value, bound).is_gt(),
            Self::Less(bound) => compare(value, bound).is_lt(),
            Self::GreaterOrEqual(bound) => compare(value, bound).is_ge(),
            Self::LessOrEqual(bound) => compare(value, bound).is_le(),
            Self::Between(low, high, true) => compare(value, low).is_ge() && compare(value, high).is_le(),
            Self::Between(low, high, false) => compare(value, low).is_gt() && compare(value, high).is_lt(),
            Self::Equal(other) => value == other,
            Self::NotEqual(other) => value != other,
        }
    }
}
