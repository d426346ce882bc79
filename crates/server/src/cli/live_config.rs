//! The commands `ombak admin set` and `ombak admin show` for settings of the running node. Their
//! names are those of Riak's tool.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
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
    let entry = entry.ok_or_else(|| Failure::new(format!("{key}: the node has no value for this key")))?;
    out.result(entry, || text(entry))
}

fn text(entry: &Value) -> String {
    let word = |name: &str| entry[name].as_str().unwrap_or_default();
    format!("{} = {}", word("key"), word("value"))
}
