//! The resource that folds over objects for operators. It only reads.

use super::key_decision::{Name, bytes_of, name};
use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::folds;
use crate::http::Part::Word;
use bytes::Bytes;
use ombak_kv::UncountedMemory;
use ombak_kv::folds::{FoldRange, FoldResult, FoldStats, FoldWants, Found, FoundKey};
use ombak_types::Bucket;
use serde::Deserialize;
use serde_json::{Map, Value, json};

const FOLD: Permission = Permission::named("ombak_admin.fold");

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] =
    &[AdminPath::post(&[Word(b"fold")], FOLD, |call| Box::pin(fold(call.ctx, call.body)))];

/// What is gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Gathered {
    Stats,
    Siblings,
    Sizes,
    Tombstones,
    Buckets,
}

/// What a body says of the fold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    fold: Gathered,
    /// Keys with more siblings or bytes than this are found.
    above: Option<u64>,
}

/// What a body says of the objects.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selected {
    bucket_type: Option<Name>,
    bucket: Option<Name>,
    first_key: Option<Name>,
    last_key: Option<Name>,
    /// Unix seconds of the latest write.
    since_secs: Option<u32>,
    until_secs: Option<u32>,
}

const FORM: &str = r#"the body must be {"fold": "stats"|"siblings"|"sizes"|"tombstones", "bucket": "…", with "bucket_type", "above", "first_key", "last_key", "since_secs" and "until_secs" if wanted} or {"fold": "buckets"}"#;

async fn fold(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let (range, wants) = definition(ctx, body)?;
    let result =
        folds::run(&ctx.kv, range, wants, &mut UncountedMemory).await.map_err(|e| AdminError::Failed(e.to_string()))?;
    Ok(result_json(wants, &result))
}

fn malformed(why: impl std::fmt::Display) -> AdminError {
    AdminError::BadRequest(format!("{FORM}: {why}"))
}

/// What a body asks for.
fn definition(ctx: &AdminContext, body: &[u8]) -> Result<(FoldRange, FoldWants), AdminError> {
    let mut members: Map<String, Value> = serde_json::from_slice(body).map_err(malformed)?;
    let of_fold = ["fold", "above"].into_iter().filter_map(|name| members.remove_entry(name)).collect();
    let wanted: Wanted = serde_json::from_value(Value::Object(of_fold)).map_err(malformed)?;
    let above = wanted.above.unwrap_or(1);
    let wants = match wanted.fold {
        Gathered::Stats => FoldWants::Stats,
        Gathered::Siblings => FoldWants::SiblingsAbove(above),
        Gathered::Sizes => FoldWants::BytesAbove(above),
        Gathered::Tombstones => FoldWants::Tombstones,
        Gathered::Buckets if members.is_empty() => {
            return Ok((FoldRange::of_classes(ctx.kv.n_vals()), FoldWants::Buckets));
        }
        Gathered::Buckets => return Err(malformed("a list of buckets is of no bucket")),
    };
    Ok((range_of(Value::Object(members)).map_err(malformed)?, wants))
}

/// The objects that a body selects. The error says what is wrong.
pub(super) fn range_of(selected: Value) -> Result<FoldRange, String> {
    let selected: Selected = serde_json::from_value(selected).map_err(|why| why.to_string())?;
    let bytes = |name: Option<Name>| bytes_of(name).map_err(|why| why.to_string());
    let Some(name) = bytes(selected.bucket)? else { return Err("name a bucket".to_owned()) };
    let bucket = match bytes(selected.bucket_type)? {
        Some(bucket_type) => Bucket::typed(bucket_type, name),
        None => Bucket::untyped(name),
    };
    let mut range = FoldRange::of_bucket(bucket);
    let keys = (bytes(selected.first_key)?, bytes(selected.last_key)?);
    if keys != (None, None) {
        // No key is longer, so none is behind it.
        let behind_all = || Bytes::from(vec![u8::MAX; ombak_types::names::KEY_BYTES_MAX + 1]);
        let (first, last) = (keys.0.unwrap_or_default(), keys.1.unwrap_or_else(behind_all));
        folds::set_keys(&mut range, first, last).map_err(|_| "the last key is before the first one")?;
    }
    if selected.since_secs.is_some() || selected.until_secs.is_some() {
        let (first, last) = (selected.since_secs.unwrap_or(0), selected.until_secs.unwrap_or(u32::MAX));
        folds::set_modified(&mut range, first.into(), last.into()).map_err(|_| "the times end before they begin")?;
    }
    Ok(range)
}

fn result_json(wants: FoldWants, result: &FoldResult) -> Value {
    match wants {
        FoldWants::Stats => stats_json(&result.stats),
        FoldWants::Buckets => json!({ "buckets": result.buckets.iter().map(bucket_json).collect::<Vec<_>>() }),
        _ => json!({ "keys": result.keys.iter().map(key_json).collect::<Vec<_>>() }),
    }
}

fn stats_json(stats: &FoldStats) -> Value {
    let orders = |orders: &std::collections::BTreeMap<u32, u64>, what: &str| {
        let order = |(order, count): (&u32, &u64)| json!({ what: order, "objects": count });
        orders.iter().map(order).collect::<Vec<_>>()
    };
    json!({
        "objects": stats.objects,
        "bytes": stats.bytes,
        "sizes": orders(&stats.sizes, "magnitude"),
        "siblings": orders(&stats.siblings, "siblings"),
    })
}

pub(super) fn bucket_json(bucket: &Bucket) -> Value {
    json!({ "bucket_type": name(&bucket.bucket_type), "bucket": name(&bucket.name) })
}

fn key_json(found: &FoundKey) -> Value {
    let mut key = bucket_json(&found.bucket);
    key["key"] = name(&found.key);
    if let Found::Number(number) = found.found {
        key["value"] = json!(number);
    }
    key
}
