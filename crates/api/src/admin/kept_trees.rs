//! The resources of kept trees: which of them are there, and the order to make them anew.

use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::Word;
use ombak_kv::{KeptTree, TreeState};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

const SHOW: Permission = Permission::named("ombak_admin.kept_trees");
const REBUILD: Permission = Permission::named("ombak_admin.rebuild_kept_trees");
/// What Riak says.
const NOT_ACTIVE: &str = "tictacaae not active: tictacaae_active is passive, so no trees are kept";
/// The longest wait before trees are made anew.
const DELAY_SECS_MAX: u64 = 366 * 24 * 3_600;

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"kept-trees")], SHOW, |call| Box::pin(show(call.ctx))),
    AdminPath::post(&[Word(b"kept-trees"), Word(b"rebuild")], REBUILD, |call| Box::pin(rebuild(call.ctx, call.body))),
];

async fn show(ctx: &AdminContext) -> Result<Value, AdminError> {
    let kv = ctx.kv.clone();
    let trees = ctx.kv.offload(move || kv.kept_trees()).await.map_err(|e| AdminError::Failed(e.to_string()))?;
    let trees = trees.ok_or_else(|| AdminError::Refused(NOT_ACTIVE.to_owned()))?;
    Ok(json!({ "node": ctx.node.name, "trees": trees.iter().map(tree_json).collect::<Vec<_>>() }))
}

fn tree_json(tree: &KeptTree) -> Value {
    let status = match tree.state {
        TreeState::Unbuilt => "unbuilt",
        TreeState::Building => "building",
        TreeState::Built => "built",
        TreeState::Rebuilding => "rebuilding",
    };
    json!({
        "partition": tree.partition,
        "n_val": tree.n_val,
        "status": status,
        "has_expiring": tree.has_expiring,
        "made_before_secs": tree.made_before.map(|time| time.as_secs()),
        "made_anew_in_secs": tree.made_anew_in.map(|time| time.as_secs()),
    })
}

/// The body of a request that lets trees be made anew.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rebuild {
    partition: Option<u32>,
    #[serde(default)]
    delay_secs: u64,
}

async fn rebuild(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let form = r#"the body must be {"partition": NUMBER, "delay_secs": NUMBER}, each if wanted"#;
    let malformed = |why: String| AdminError::BadRequest(format!("{form}: {why}"));
    let Rebuild { partition, delay_secs } = serde_json::from_slice(body).map_err(|why| malformed(why.to_string()))?;
    if delay_secs > DELAY_SECS_MAX {
        return Err(malformed(format!("the delay is {DELAY_SECS_MAX} seconds at most")));
    }
    if let Some(partition) = partition.filter(|partition| *partition >= ctx.node.ring_size) {
        return Err(malformed(format!("there is no partition {partition}: they are 0 to {}", ctx.node.ring_size - 1)));
    }
    let (kv, after) = (ctx.kv.clone(), Duration::from_secs(delay_secs));
    let trees = ctx.kv.offload(move || kv.rebuild_kept_trees(partition, after)).await;
    let trees = trees.map_err(|e| AdminError::Failed(e.to_string()))?;
    let trees = trees.ok_or_else(|| AdminError::Refused(NOT_ACTIVE.to_owned()))?;
    Ok(json!({ "node": ctx.node.name, "trees": trees }))
}
