//! A search for the tests of the interfaces.

use ombak_kv::buckets::Namespaces;
use ombak_kv::hooks::Hooks;
use ombak_runtime::TokioRuntime;
use ombak_searching::{Search, SearchConfig};
use std::path::Path;
use std::sync::Arc;

/// A search, and the hooks of its node. It keeps its records, and indexes nothing: whoever asks it
/// finds no replica that could answer.
pub(crate) fn search_without_indexes(dir: &Path) -> (Arc<Search>, Hooks) {
    let search = Search::new(SearchConfig::new(dir.join("search")), Arc::new(TokioRuntime));
    let hooks = Hooks {
        kinds: ombak_datatypes::kinds(),
        features_asked: vec![search.feature_answers()],
        namespaces: Namespaces::new(vec![search.namespace()]),
        ..Hooks::default()
    };
    (search, hooks)
}
