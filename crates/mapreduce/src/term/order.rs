//! Erlang's order of terms: number < atom < tuple < map < empty list < list < binary.

use super::number::as_float;
use num_bigint::{BigInt, Sign};
use ombak_types::etf::{Term, encode};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Erlang's order, in which `1` and `1.0` are equal.
pub fn compare(a: &Term, b: &Term) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (Term::Atom(a), Term::Atom(b)) => a.cmp(b),
        (Term::Tuple(a), Term::Tuple(b)) => a.len().cmp(&b.len()).then_with(|| compare_all(a, b)),
        (Term::Map(a), Term::Map(b)) => compare_maps(a, b),
        (Term::Binary(a), Term::Binary(b)) => a.cmp(b),
        _ if rank(a) == NUMBER => compare_numbers(a, b),
        _ if rank(a) == EMPTY_LIST => Ordering::Equal,
        _ => compare_lists(a, b),
    })
}

/// An order of all terms that agrees with [`compare`] and in which only identical terms are equal.
pub fn order(a: &Term, b: &Term) -> Ordering {
    compare(a, b).then_with(|| if a == b { Ordering::Equal } else { encode(a).cmp(&encode(b)) })
}

const NUMBER: u8 = 0;
const EMPTY_LIST: u8 = 4;
const LIST: u8 = 5;

fn rank(term: &Term) -> u8 {
    match term {
        Term::Int(_) | Term::Big(_) | Term::Float(_) => NUMBER,
        Term::Atom(_) => 1,
        Term::Tuple(_) => 2,
        Term::Map(_) => 3,
        Term::List(items) if items.is_empty() => EMPTY_LIST,
        Term::List(_) | Term::String(_) | Term::ImproperList(..) => LIST,
        Term::Binary(_) => 6,
    }
}

fn compare_all(a: &[Term], b: &[Term]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|found| found.is_ne()).unwrap_or(Ordering::Equal)
}

/// Maps are compared by their sizes, then by their sorted keys, then by the values of these.
fn compare_maps(a: &[(Term, Term)], b: &[(Term, Term)]) -> Ordering {
    let sorted = |pairs: &[(Term, Term)]| {
        let mut pairs: Vec<(Term, Term)> = pairs.to_vec();
        pairs.sort_by(|a, b| order(&a.0, &b.0));
        let (keys, values): (Vec<Term>, Vec<Term>) = pairs.into_iter().unzip();
        [keys, values].concat()
    };
    a.len().cmp(&b.len()).then_with(|| compare_all(&sorted(a), &sorted(b)))
}

/// The element of a list at an index, and whether the list goes on. The end of a proper list is the
/// empty list.
fn element(list: &Term, index: usize) -> (Cow<'_, Term>, bool) {
    let end = || Cow::Owned(Term::nil());
    match list {
        Term::List(items) => items.get(index).map_or_else(|| (end(), false), |item| (Cow::Borrowed(item), true)),
        Term::String(bytes) => {
            bytes.get(index).map_or_else(|| (end(), false), |&byte| (Cow::Owned(Term::Int(i64::from(byte))), true))
        }
        Term::ImproperList(items, tail) => {
            items.get(index).map_or_else(|| (Cow::Borrowed(&**tail), false), |item| (Cow::Borrowed(item), true))
        }
        _ => (end(), false),
    }
}

fn compare_lists(a: &Term, b: &Term) -> Ordering {
    for index in 0.. {
        match (element(a, index), element(b, index)) {
            ((x, true), (y, true)) => match compare(&x, &y) {
                Ordering::Equal => {}
                found => return found,
            },
            ((x, false), (y, false)) => return compare(&x, &y),
            // What is left of the longer list is a list; a tail can be any term.
            ((tail, false), (_, true)) => return rank(&tail).cmp(&LIST).then(Ordering::Less),
            ((_, true), (tail, false)) => return LIST.cmp(&rank(&tail)).then(Ordering::Greater),
        }
    }
    Ordering::Equal
}

fn compare_numbers(a: &Term, b: &Term) -> Ordering {
    match (a, b) {
        (Term::Int(a), Term::Int(b)) => a.cmp(b),
        (Term::Float(a), Term::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Term::Float(float), other) => compare_with_float(other, *float).reverse(),
        (other, Term::Float(float)) => compare_with_float(other, *float),
        (Term::Int(a), Term::Big(b)) => BigInt::from(*a).cmp(b),
        (Term::Big(a), Term::Int(b)) => a.cmp(&BigInt::from(*b)),
        (Term::Big(a), Term::Big(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

/// Compares an integer with a float, exactly where the float has a fraction.
fn compare_with_float(integer: &Term, float: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match integer {
        Term::Int(_) if float >= LIMIT => Ordering::Less,
        Term::Int(_) if float < -LIMIT => Ordering::Greater,
        Term::Int(n) => {
            n.cmp(&(float.trunc() as i64)).then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
        }
        Term::Big(n) if float.abs() < LIMIT => {
            if n.sign() == Sign::Minus {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        other => as_float(other).and_then(|n| n.partial_cmp(&float)).unwrap_or(Ordering::Equal),
    }
}
