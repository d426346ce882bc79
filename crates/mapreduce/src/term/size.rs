//! How much memory a term takes.

use ombak_types::etf::Term;
use std::mem::size_of;

/// The bytes that a term holds, its own place included. Room that vectors keep is not counted.
pub fn bytes_held(term: &Term) -> usize {
    let inside = match term {
        Term::Int(_) | Term::Float(_) => 0,
        Term::Big(n) => usize::try_from(n.bits() / 8 + 8).unwrap_or(usize::MAX),
        Term::Atom(name) => name.len(),
        Term::Binary(bytes) | Term::String(bytes) => bytes.len(),
        Term::Tuple(items) | Term::List(items) => items.iter().map(bytes_held).sum(),
        Term::ImproperList(items, tail) => items.iter().map(bytes_held).sum::<usize>() + bytes_held(tail),
        Term::Map(pairs) => pairs.iter().map(|(key, value)| bytes_held(key) + bytes_held(value)).sum(),
    };
    inside.saturating_add(size_of::<Term>())
}
