//! The commands `ombak admin set` and `ombak admin show` for settings of the running node. Their
//! names are those of Riak's tool.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::key_list;
use super::output::Output;
use super::target::Target;
use crate::config;
use hyper::Method;
use serde_json::{Value, json};

const PATH: &str = "/admin/v1/config";

/// The command `ombak admin set KEY=VALUE`.
pub async fn set(assignment: &str, common: &Common, out: Output) -> Result<(), Failure> {
    let (key, value) = assignment
        .split_once('=')
        .ok_or_else(|| Failure::usage(format!("{assignment}: must be KEY=VALUE, such as logger.level=debug")))?;
    let target = Target::find(common)?;
    let body = json!({"key": key.trim(), "value": value.trim()}).to_string();
    let entry = request(&target, Method::POST, PATH, &body).await.map_err(|e| e.into_failure(&target))?;
    out.result(&entry, || text(&entry))
}

/// The command `ombak admin show KEY`.
pub async fn show(key: &str, common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let config = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
    let entry = config["config"].as_array().into_iter().flatten().find(|entry| entry["key"] == key);
    let entry = entry.ok_or_else(|| Failure::new(absent(key)))?;
    out.result(entry, || text(entry))
}

/// Why a node shows no value for a key.
fn absent(key: &str) -> String {
    let below = format!("{}.", key.trim_end_matches('.'));
    match config::find_key(key) {
        Some(_) => format!("{key}: the node has no value for this key; 'ombak config describe {key}' explains it"),
        None if key_list::with_prefix(&below).is_empty() => config::unknown_key(key),
        None => format!("{key}: several keys begin with this; 'ombak config describe {below}' lists them"),
    }
}

fn text(entry: &Value) -> String {
    let word = |name: &str| entry[name].as_str().unwrap_or_default();
    format!("{} = {}", word("key"), word("value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_a_value_is_told_from_one_that_does_not_exist() {
        for (key, part) in [
            ("ring_sise", "unknown key 'ring_sise'; did you mean 'ring_size'?"),
            ("zork", "unknown key 'zork'"),
            ("bitcask", "'ombak config describe bitcask.' lists them"),
            ("bitcask.", "'ombak config describe bitcask.' lists them"),
            ("cluster.peers", "the node has no value for this key"),
        ] {
            assert!(absent(key).contains(part), "{}", absent(key));
        }
    }
}
