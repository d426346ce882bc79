//! The search of a node, if it is switched on, and what it does for MapReduce jobs.

use super::input_searches::SearchesOfNode;
use crate::config::SearchSettings;
use ombak_jobs::InputSearches;
use ombak_kv::hooks::Hooks;
use ombak_runtime::Runtime;
use ombak_searching::{Search, SearchConfig};
use std::sync::Arc;

/// The search of a node; `None` if it is off.
pub fn of_node(settings: &SearchSettings, runtime: Arc<dyn Runtime>) -> Option<Arc<Search>> {
    let SearchSettings { is_on, dir, memory_bytes } = settings;
    let config = SearchConfig { writer_memory_bytes: *memory_bytes, ..SearchConfig::new(dir.clone()) };
    is_on.then(|| Search::new(config, runtime))
}

/// The hooks of a node with those of search.
pub fn hooks_with(search: Option<&Arc<Search>>, mut hooks: Hooks) -> Hooks {
    if let Some(search) = search {
        hooks.consumer_sources.push(search.consumer_source());
        hooks.features_asked.push(search.feature_answers());
    }
    hooks
}

/// What finds the inputs of jobs by searches; `None` on a node without search.
pub fn of_jobs(search: Option<&Arc<Search>>) -> Option<Arc<dyn InputSearches>> {
    search.map(|search| Arc::new(SearchesOfNode::new(Arc::clone(search))) as Arc<dyn InputSearches>)
}
