//! Terms that all data types share: clocks, dots, removals, and dictionaries.

use crate::clock::Clock;
use crate::dot_map::Dots;
use crate::{BadBytes, Dot};
use bytes::Bytes;
use num_bigint::BigInt;
use ombak_types::Actor;
use ombak_types::etf::Term;

pub(super) fn actor(term: &Term) -> Result<Actor, BadBytes> {
    match term {
        Term::Binary(bytes) => Actor::try_new(bytes).ok_or(BadBytes::TooLarge),
        _ => Err(BadBytes::Unexpected("actor")),
    }
}

pub(super) fn actor_term(actor: &Actor) -> Term {
    Term::binary(actor.as_bytes())
}

pub(super) fn count(term: &Term) -> Result<u64, BadBytes> {
    let count = term.as_u64().ok_or(BadBytes::Unexpected("count"))?;
    if count <= Dot::COUNT_MAX { Ok(count) } else { Err(BadBytes::TooLarge) }
}

/// A number of a tally.
pub(super) fn amount(term: &Term) -> Result<u128, BadBytes> {
    match term {
        Term::Int(n) => u128::try_from(*n).map_err(|_| BadBytes::Unexpected("amount")),
        Term::Big(n) => u128::try_from(n).map_err(|_| BadBytes::TooLarge),
        _ => Err(BadBytes::Unexpected("amount")),
    }
}

pub(super) fn amount_term(amount: u128) -> Term {
    Term::from(BigInt::from(amount))
}

pub(super) fn list(term: &Term) -> Result<&[Term], BadBytes> {
    term.as_list().ok_or(BadBytes::Unexpected("list"))
}

pub(super) fn binary(term: &Term) -> Result<Bytes, BadBytes> {
    match term {
        Term::Binary(bytes) => Ok(bytes.clone()),
        _ => Err(BadBytes::Unexpected("binary")),
    }
}

/// `{Actor, Count}`.
pub(super) fn dot(term: &Term) -> Result<Dot, BadBytes> {
    let [actor_of, count_of] = term.as_tuple().ok_or(BadBytes::Unexpected("dot"))?;
    Ok(Dot::new(actor(actor_of)?, count(count_of)?))
}

pub(super) fn dot_term(dot: &Dot) -> Term {
    Term::pair(actor_term(&dot.actor), Term::from(dot.count))
}

pub(super) fn dots(term: &Term) -> Result<Dots, BadBytes> {
    list(term)?.iter().map(|term| Ok((dot(term)?, ()))).collect()
}

pub(super) fn dots_term(dots: &Dots) -> Term {
    Term::List(dots.dots().map(dot_term).collect())
}

/// A clock, in any order.
pub(crate) fn clock(term: &Term) -> Result<Clock, BadBytes> {
    let dots = list(term)?.iter().map(dot).collect::<Result<Vec<_>, _>>()?;
    Ok(dots.iter().collect())
}

pub(crate) fn clock_term(clock: &Clock) -> Term {
    Term::List(clock.iter().map(dot_term).collect())
}

/// The pairs of a dictionary in any of the forms in which Riak stores one: an ordered list of
/// pairs, a `dict` record, or a map.
pub(super) fn pairs(term: &Term) -> Result<Vec<(Term, Term)>, BadBytes> {
    match term {
        Term::List(pairs) => pairs.iter().map(pair).collect(),
        Term::Map(pairs) => Ok(pairs.clone()),
        dict => dict_pairs(dict).ok_or(BadBytes::Unexpected("dictionary")),
    }
}

fn pair(term: &Term) -> Result<(Term, Term), BadBytes> {
    let [key, value] = term.as_tuple().ok_or(BadBytes::Unexpected("pair"))?;
    Ok((key.clone(), value.clone()))
}

/// The pairs of `{dict, Size, N, MaxN, Bso, ExpSize, ConSize, Empty, {Segment, …}}`. A segment is a
/// tuple of buckets, and a bucket a list of `[Key | Value]`. In which bucket a key is does not
/// matter to a reader.
fn dict_pairs(dict: &Term) -> Option<Vec<(Term, Term)>> {
    let [tag, _, _, _, _, _, _, _, Term::Tuple(segments)] = dict.as_tuple()? else { return None };
    if tag.as_atom() != Some("dict") {
        return None;
    }
    let mut pairs = Vec::new();
    for segment in segments {
        let Term::Tuple(buckets) = segment else { return None };
        for bucket in buckets {
            for cell in bucket.as_list()? {
                pairs.push(cell_pair(cell)?);
            }
        }
    }
    Some(pairs)
}

/// The pair in a list cell. If the value is a list, the cell is a list whose first element is the
/// key.
fn cell_pair(cell: &Term) -> Option<(Term, Term)> {
    match cell {
        Term::ImproperList(items, tail) => match items.as_slice() {
            [key] => Some((key.clone(), (**tail).clone())),
            _ => None,
        },
        Term::List(items) => {
            let (key, rest) = items.split_first()?;
            Some((key.clone(), Term::from_list(rest.to_vec())))
        }
        _ => None,
    }
}
