//! Searches as inputs of MapReduce jobs: the search of the node behind the trait that jobs know.

use bytes::Bytes;
use ombak_jobs::{Failure, FoundInputs, InputSearch, InputSearches, InputsFailure, InputsProblem};
use ombak_runtime::BoxFuture;
use ombak_searching::{FoundKeys, KeySearch, Search, SearchError};
use ombak_types::Error;
use ombak_types::etf::BinaryText;
use std::sync::Arc;

/// The search of the node, for its jobs.
pub(super) struct SearchesOfNode(Arc<Search>);

impl SearchesOfNode {
    pub(super) const fn new(search: Arc<Search>) -> Self {
        Self(search)
    }
}

impl InputSearches for SearchesOfNode {
    fn find(&self, search: &InputSearch, from: Option<&str>) -> BoxFuture<'static, Result<FoundInputs, Failure>> {
        let (node, search, from) = (Arc::clone(&self.0), key_search(search), from.map(str::to_owned));
        Box::pin(async move {
            let FoundKeys { keys, next } = node.keys(&search?, from.as_deref()).await.map_err(failure)?;
            Ok(FoundInputs { keys, next })
        })
    }
}

/// The search as the search of the node takes it: with texts.
fn key_search(search: &InputSearch) -> Result<KeySearch, Failure> {
    let text = |name: &str, bytes: &Bytes| {
        let text = String::from_utf8(bytes.to_vec());
        text.map_err(|_| inputs_failure(InputsProblem::Bad, format!("{name}: it is not UTF-8")))
    };
    let no_index = |_| inputs_failure(InputsProblem::Missing, format!("No index {} found.", BinaryText(&search.index)));
    Ok(KeySearch {
        index: String::from_utf8(search.index.to_vec()).map_err(no_index)?,
        query: text("q", &search.query)?,
        filter: search.filter.as_ref().map(|filter| text("fq", filter)).transpose()?,
        deadline: search.deadline,
    })
}

/// The failure of a job whose search fails. It has the words that a client of the search gets.
fn failure(error: SearchError) -> Failure {
    let problem = match &error {
        SearchError::NoIndex(_) => InputsProblem::Missing,
        SearchError::BadRequest(_) => InputsProblem::Bad,
        SearchError::NotEnoughNodes | SearchError::Partial => InputsProblem::Unavailable,
        SearchError::TimedOut => return Failure::Timeout,
        // These say what to do, and Riak's text would hide it.
        SearchError::Failed(why @ (Error::Overload | Error::Stopping)) => {
            return inputs_failure(InputsProblem::Unavailable, why.to_string());
        }
        SearchError::Failed(why) => {
            tracing::warn!(%why, "a search for the inputs of a job has failed");
            InputsProblem::Unavailable
        }
    };
    inputs_failure(problem, error.to_string())
}

fn inputs_failure(problem: InputsProblem, why: String) -> Failure {
    Failure::Inputs(InputsFailure { problem, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn failed(problem: InputsProblem, why: &str) -> Failure {
        inputs_failure(problem, why.to_owned())
    }

    #[test]
    fn a_search_that_fails_says_what_has_to_change() {
        let no_index = SearchError::NoIndex("x".to_owned());
        assert_eq!(failure(no_index), failed(InputsProblem::Missing, "No index <<\"x\">> found."));
        assert_eq!(failure(SearchError::BadRequest("q: no".to_owned())), failed(InputsProblem::Bad, "q: no"));
        for error in [
            SearchError::NotEnoughNodes,
            SearchError::Partial,
            SearchError::Failed(Error::Overload),
            SearchError::Failed(Error::AllNodesDown),
        ] {
            let found = failure(error);
            let is_unavailable =
                matches!(&found, Failure::Inputs(inputs) if inputs.problem == InputsProblem::Unavailable);
            assert!(is_unavailable, "{found:?}");
        }
        assert_eq!(failure(SearchError::TimedOut), Failure::Timeout);
    }

    #[test]
    fn what_is_no_text_is_no_search() {
        let search = |index: &'static [u8], query: &'static [u8]| InputSearch {
            index: Bytes::from_static(index),
            query: Bytes::from_static(query),
            filter: None,
            deadline: Instant::now(),
        };
        assert!(key_search(&search(b"i", b"a:b")).is_ok());
        let missing = failed(InputsProblem::Missing, "No index <<128>> found.");
        assert_eq!(key_search(&search(b"\x80", b"a:b")), Err(missing));
        assert_eq!(key_search(&search(b"i", b"\xff")), Err(failed(InputsProblem::Bad, "q: it is not UTF-8")));
    }
}
