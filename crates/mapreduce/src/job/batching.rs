//! Options of phases that hide in their arguments, as in Riak.
//!
//! A reduce phase takes `reduce_phase_batch_size` and `reduce_phase_only_1`, a map phase
//! `do_prereduce` or `prereduce`. The argument is an object of JSON or a list of Erlang's pairs and
//! atoms. The function gets the argument unchanged.

use ombak_types::etf::Term;

/// When a reduce function is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batching {
    /// How many new values one call gets, at least. `None` means that the node's configuration
    /// decides.
    pub values_min: Option<usize>,
    /// The function is called once, with all values.
    pub only_once: bool,
}

impl Batching {
    /// Reads the options of a reduce phase.
    pub(super) fn of_reduce(arg: &Term) -> Self {
        let size = option(arg, "reduce_phase_batch_size");
        Self {
            values_min: size.and_then(|size| size.as_u64()).and_then(|n| usize::try_from(n).ok()).map(|n| n.max(1)),
            only_once: is_true(option(arg, "reduce_phase_only_1")),
        }
    }
}

/// Whether a map phase asks for its results to be reduced before they travel. `None` if it says
/// nothing.
pub(crate) fn asks_for_prereduce(arg: &Term) -> Option<bool> {
    ["do_prereduce", "prereduce"].into_iter().find_map(|name| option(arg, name)).map(|value| is_true(Some(value)))
}

fn is_true(value: Option<Term>) -> bool {
    value.is_some_and(|value| value.as_atom() == Some("true"))
}

/// The value of an option. An atom alone stands for `true`.
fn option(arg: &Term, name: &str) -> Option<Term> {
    let members = match arg {
        Term::Tuple(pair) if pair.len() == 2 && pair[0].as_atom() == Some("struct") => pair[1].as_list()?,
        other => other.as_list()?,
    };
    members.iter().find_map(|member| match member {
        Term::Atom(found) => (&**found == name).then(|| Term::atom("true")),
        Term::Tuple(pair) if pair.len() == 2 && is_name(&pair[0], name) => Some(pair[1].clone()),
        _ => None,
    })
}

fn is_name(term: &Term, name: &str) -> bool {
    term.as_atom() == Some(name) || matches!(term, Term::Binary(text) if text == name.as_bytes())
}
