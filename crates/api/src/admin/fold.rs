//! The resource that folds over objects for operators. It only reads.

use super::folds_under_way::WATCH_BYTES_MAX;
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
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::post(&[Word(b"fold")], FOLD, |call| Box::pin(fold(call.ctx, call.body))),
    AdminPath::get(&[Word(b"folds")], FOLD, |call| {
        Box::pin(async { Ok(call.ctx.folds.to_json(call.ctx.kv.shared_runtime().now())) })
    }),
];

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

impl Gathered {
    const fn name(self) -> &'static str {
        match self {
            Self::Stats => "stats",
            Self::Siblings => "siblings",
            Self::Sizes => "sizes",
            Self::Tombstones => "tombstones",
            Self::Buckets => "buckets",
        }
    }
}

/// What a body says of the fold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    fold: Gathered,
    /// Keys with more siblings or bytes than this are found.
    above: Option<u64>,
    /// The word by which the caller finds its fold among those under way.
    watch: Option<String>,
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
    let (range, wants, wanted) = definition(ctx, body)?;
    let watch = checked_watch(wanted.watch).map_err(malformed)?;
    let under_way = ctx.folds.begin(wanted.fold.name(), watch, ctx.kv.shared_runtime().now());
    let result = folds::run_watched(&ctx.kv, range, wants, &mut UncountedMemory, &under_way.progress).await;
    let result = result.map_err(|e| AdminError::Failed(e.to_string()))?;
    Ok(result_json(wants, &result))
}

/// The word by which a caller finds its fold. The error says what is wrong.
pub(super) fn checked_watch(watch: Option<String>) -> Result<Option<String>, String> {
    match watch {
        Some(word) if word.len() > WATCH_BYTES_MAX => Err(format!("'watch' has {WATCH_BYTES_MAX} bytes at most")),
        watch => Ok(watch),
    }
}

fn malformed(why: impl std::fmt::Display) -> AdminError {
    AdminError::BadRequest(format!("{FORM}: {why}"))
}

/// What a body asks for.
fn definition(ctx: &AdminContext, body: &[u8]) -> Result<(FoldRange, FoldWants, Wanted), AdminError> {
    let mut members: Map<String, Value> = serde_json::from_slice(body).map_err(malformed)?;
    let of_fold = ["fold", "above", "watch"].into_iter().filter_map(|name| members.remove_entry(name)).collect();
    let wanted: Wanted = serde_json::from_value(Value::Object(of_fold)).map_err(malformed)?;
    let above = wanted.above.unwrap_or(1);
    let wants = match wanted.fold {
        Gathered::Stats => FoldWants::Stats,
        Gathered::Siblings => FoldWants::SiblingsAbove(above),
        Gathered::Sizes => FoldWants::BytesAbove(above),
        Gathered::Tombstones => FoldWants::Tombstones,
        Gathered::Buckets if members.is_empty() => {
            return Ok((FoldRange::of_classes(ctx.kv.n_vals()), FoldWants::Buckets, wanted));
        }
        Gathered::Buckets => return Err(malformed("a list of buckets is of no bucket")),
    };
    Ok((range_of(Value::Object(members)).map_err(malformed)?, wants, wanted))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::administration::admin_context;
    use ombak_kv::{Kv, KvConfig, head_terms};
    use ombak_storage::{MemoryConfig, MemoryFactory};
    use std::sync::Arc;
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};
    use tempfile::TempDir;

    /// The future of a request is dropped when its connection closes.
    #[tokio::test]
    async fn a_fold_is_under_way_until_its_caller_gives_it_up() {
        let (dir, backups) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
        let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let config = KvConfig { ring_size: 8, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
        let kv = Kv::open(config).expect("an engine");
        let ctx = admin_context(kv.clone(), &backups);
        let under_way = || ctx.folds.to_json(kv.shared_runtime().now());
        // Its steps run on another thread, which is sometimes as fast as the look at them. Then the
        // fold has ended, and another one begins.
        let deadline = Instant::now() + Duration::from_secs(20);
        let call = loop {
            let mut call = Box::pin(fold(&ctx, br#"{"fold": "stats", "bucket": "b", "watch": "w"}"#));
            if call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                break call;
            }
            assert_eq!(under_way(), json!({ "folds": [] }), "a fold that has ended is not under way");
            assert!(Instant::now() < deadline, "each fold has ended at the first look");
        };
        let shown = &under_way()["folds"][0];
        assert_eq!((&shown["fold"], &shown["watch"], &shown["partitions"]), (&json!("stats"), &json!("w"), &json!(8)));
        drop(call);
        assert_eq!(under_way(), json!({ "folds": [] }));
        let body = format!(r#"{{"fold": "stats", "bucket": "b", "watch": "{}"}}"#, "w".repeat(WATCH_BYTES_MAX + 1));
        assert!(matches!(fold(&ctx, body.as_bytes()).await, Err(AdminError::BadRequest(_))));
        assert_eq!(
            fold(&ctx, br#"{"fold": "stats", "bucket": "b"}"#).await.map(|found| found["objects"].clone()),
            Ok(json!(0))
        );
    }
}
