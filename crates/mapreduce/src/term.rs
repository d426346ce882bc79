//! The values of a job are Erlang's terms, as in Riak: functions that are built in compare and add
//! terms, and a client may ask for results in Erlang's own encoding.

mod json;
mod number;
mod order;
mod size;
mod values;

pub(crate) use json::list_to_json;
pub use json::{NotJson, from_json, to_json};
pub(crate) use number::add;
pub use order::{compare, order};
pub(crate) use size::bytes_as_term;
pub use size::bytes_held;
pub use values::Values;

use ombak_types::etf::Term;

/// The elements of a proper list, `String`s included. `None` for any other term.
pub(crate) fn list_items(term: &Term) -> Option<Vec<Term>> {
    match term {
        Term::List(_) | Term::String(_) => term.clone().into_list(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
