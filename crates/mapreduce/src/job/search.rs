//! Searches as inputs.

use super::inputs::Inputs;
use crate::term::list_items;
use bytes::Bytes;
use ombak_types::etf::Term;

/// The modules of Riak's two searches. Both names stand for the search of the node.
const MODULES: [&str; 2] = ["yokozuna", "riak_search"];
/// Their function that gives inputs.
const FUNCTION: &str = "mapred_search";

impl Inputs {
    /// What an Erlang function gives: what a search finds, if it is Riak's function for that.
    pub(super) fn of_function(module: &str, function: &str, arg: Term) -> Self {
        let is_search = MODULES.contains(&module) && function == FUNCTION;
        let search = if is_search { search_of(&arg) } else { None };
        search.unwrap_or_else(|| Self::Function { module: module.to_owned(), function: function.to_owned(), arg })
    }

    /// What a search finds. As in Riak, an empty filter is none.
    pub(super) fn of_search(index: Bytes, query: Bytes, filter: Option<Bytes>) -> Self {
        Self::Search { index, query, filter: filter.filter(|filter| !filter.is_empty()) }
    }

    /// Whether an Erlang function of this module would be a search.
    pub fn is_module_of_search(module: &str) -> bool {
        MODULES.contains(&module)
    }
}

/// `[Index,Query]` or `[Index,Query,Filter]`.
fn search_of(arg: &Term) -> Option<Inputs> {
    let texts = list_items(arg)?.iter().map(Term::as_text).collect::<Option<Vec<Bytes>>>()?;
    match &texts[..] {
        [index, query] => Some(Inputs::of_search(index.clone(), query.clone(), None)),
        [index, query, filter] => Some(Inputs::of_search(index.clone(), query.clone(), Some(filter.clone()))),
        _ => None,
    }
}
