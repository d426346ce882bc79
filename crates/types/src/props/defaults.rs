//! The properties of unconfigured types and buckets in Riak 3.2, in the member order of its HTTP
//! answers (docs/riak/http-api.md §4 and §17).

use super::PropMap;
use serde_json::{Value, json};

/// The properties of the default type, in alphabetical order.
pub fn default_type_defaults() -> PropMap {
    into_map(json!({
        "allow_mult": false,
        "basic_quorum": false,
        "big_vclock": 50,
        "chash_keyfun": {"mod": "riak_core_util", "fun": "chash_std_keyfun"},
        "dvv_enabled": false,
        "dw": "quorum",
        "last_write_wins": false,
        "linkfun": {"mod": "riak_kv_wm_link_walker", "fun": "mapreduce_linkfun"},
        "n_val": 3,
        "node_confirms": 0,
        "notfound_ok": true,
        "old_vclock": 86_400,
        "postcommit": [],
        "pr": 0,
        "precommit": [],
        "pw": 0,
        "r": "quorum",
        "repl": true,
        "rw": "quorum",
        "small_vclock": 50,
        "sync_on_write": "backend",
        "w": "quorum",
        "write_once": false,
        "young_vclock": 20,
    }))
}

/// The initial properties of a created type, in reverse alphabetical order. Unlike the default
/// type, it keeps siblings and uses dots, and it has neither `repl` nor `write_once`.
pub fn created_type_defaults() -> PropMap {
    let mut names_and_values: Vec<(String, Value)> =
        default_type_defaults().into_iter().filter(|(name, _)| name != "repl" && name != "write_once").collect();
    names_and_values.reverse();
    for (name, value) in &mut names_and_values {
        if name == "allow_mult" || name == "dvv_enabled" {
            *value = Value::Bool(true);
        }
    }
    names_and_values.into_iter().collect()
}

fn into_map(value: Value) -> PropMap {
    match value {
        Value::Object(map) => map,
        _ => PropMap::new(),
    }
}
