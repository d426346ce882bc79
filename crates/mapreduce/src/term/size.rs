//! How much memory a term takes.

use ombak_types::allocated;
use ombak_types::etf::Term;
use ombak_types::json::Json;
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

/// The memory that the term of a JSON value takes, with what the allocator adds.
pub fn bytes_as_term(value: &Json) -> usize {
    const TERM: usize = size_of::<Term>();
    /// What copies of a binary share.
    const SHARED: usize = 32;
    let inside = match value {
        Json::Null | Json::Bool(_) => allocated(5),
        Json::Int(_) | Json::Float(_) => 0,
        Json::Big(n) => allocated(usize::try_from(n.bits() / 8 + 8).unwrap_or(usize::MAX)),
        Json::Text(text) => allocated(text.len()) + SHARED,
        // A list of small numbers is there twice while it becomes a text.
        Json::List(items) => allocated(items.len() * (TERM + 2)) + items.iter().map(bytes_inside).sum::<usize>(),
        Json::Object(members) => {
            let pair = |(name, value): &(String, Json)| {
                allocated(2 * TERM) + allocated(name.len()) + SHARED + bytes_inside(value)
            };
            let pairs = members.iter().map(pair).sum::<usize>();
            allocated(2 * TERM) + allocated("struct".len()) + allocated(members.len() * TERM) + pairs
        }
    };
    inside + TERM
}

/// The memory of a term without its own place.
fn bytes_inside(value: &Json) -> usize {
    bytes_as_term(value) - size_of::<Term>()
}
