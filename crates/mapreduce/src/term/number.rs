//! Adding numbers as Erlang does.

use num_bigint::BigInt;
use ombak_types::etf::Term;

/// The sum of two numbers. `None` if one is no number, or if the sum is not finite.
pub(crate) fn add(a: &Term, b: &Term) -> Option<Term> {
    match (a, b) {
        (Term::Int(a), Term::Int(b)) => {
            Some(a.checked_add(*b).map_or_else(|| Term::Big(BigInt::from(*a) + *b), Term::Int))
        }
        (Term::Float(_), _) | (_, Term::Float(_)) => {
            Some(as_float(a)? + as_float(b)?).filter(|sum| sum.is_finite()).map(Term::Float)
        }
        _ => Some(Term::from(as_big(a)? + as_big(b)?)),
    }
}

fn as_big(term: &Term) -> Option<BigInt> {
    match term {
        Term::Int(n) => Some(BigInt::from(*n)),
        Term::Big(n) => Some(n.clone()),
        _ => None,
    }
}

/// The nearest float.
pub(super) fn as_float(term: &Term) -> Option<f64> {
    match term {
        Term::Int(n) => Some(*n as f64),
        Term::Big(n) => n.to_string().parse().ok(),
        Term::Float(n) => Some(*n),
        _ => None,
    }
}
