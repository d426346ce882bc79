//! The resource that shows what a node is busy with.

use super::AdminContext;
use super::key_decision::name;
use super::path::AdminPath;
use crate::access::Permission;
use crate::http::Part::Word;
use ombak_kv::admin::{HotKey, HotReport, LargeObject, Name, TopOfNode};
use serde_json::{Value, json};

const SHOW: Permission = Permission::named("ombak_admin.top");

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] =
    &[AdminPath::get(&[Word(b"top")], SHOW, |call| Box::pin(async move { Ok(describe(call.ctx)) }))];

/// Maximum number of keys, buckets and objects in an answer.
const LISTED_MAX: usize = 50;

/// What the node is busy with. Rates are up to the client, who asks twice: `counts` only grow.
fn describe(ctx: &AdminContext) -> Value {
    let uptime = ctx.node.started.elapsed();
    let mut top = top_json(&ctx.kv.top(LISTED_MAX));
    top["node"] = json!(ctx.node.name);
    top["uptime_ms"] = json!(u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX));
    top
}

fn top_json(top: &TopOfNode) -> Value {
    let counts = top.counts;
    let [gets, puts, listings, queries] = top.active;
    json!({
        "counts": {
            "gets": counts.gets,
            "get_errors": counts.get_errors,
            "puts": counts.puts,
            "put_errors": counts.put_errors,
            "refused": counts.refused,
            "listings": counts.listings,
            "slow": counts.slow,
        },
        "active": { "gets": gets, "puts": puts, "listings": listings, "queries": queries },
        "last_minute_us": {
            "get": { "count": top.get_us.count, "p50": top.get_us.median, "p99": top.get_us.p99, "max": top.get_us.max },
            "put": { "count": top.put_us.count, "p50": top.put_us.median, "p99": top.put_us.p99, "max": top.put_us.max },
        },
        "hot": hot_json(&top.hot),
    })
}

fn hot_json(hot: &HotReport) -> Value {
    let named = |of: &Name| {
        let mut named = json!({ "bucket_type": name(&of.bucket_type), "bucket": name(&of.bucket) });
        if of.key_bytes > 0 {
            named["key"] = name(&of.key);
            named["key_bytes"] = json!(of.key_bytes);
        }
        named
    };
    let key = |key: &HotKey| {
        let mut entry = named(&key.name);
        entry["requests"] = json!(key.requests);
        entry["error"] = json!(key.error);
        entry
    };
    let object = |object: &LargeObject| {
        let mut entry = named(&object.name);
        entry["bytes"] = json!(object.bytes);
        entry
    };
    json!({
        "seconds": hot.covers.as_secs_f64(),
        "keys": hot.keys.iter().map(key).collect::<Vec<_>>(),
        "buckets": hot.buckets.iter().map(key).collect::<Vec<_>>(),
        "largest_objects": hot.largest.iter().map(object).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn names_that_are_no_text_and_cut_off_names_are_shown() {
        let name = |key: &[u8], key_bytes| Name {
            bucket_type: b"default"[..].into(),
            bucket: b"b"[..].into(),
            key: key.into(),
            key_bytes,
        };
        let hot = HotReport {
            covers: Duration::from_secs(30),
            keys: vec![HotKey { name: name(b"\xff", 1), requests: 7, error: 2 }],
            buckets: vec![HotKey { name: name(b"", 0), requests: 9, error: 0 }],
            largest: vec![LargeObject { name: name(b"k", 300), bytes: 5 }],
        };
        let shown = hot_json(&hot);
        let at = json!({"bucket_type": "default", "bucket": "b"});
        assert_eq!(shown["keys"][0]["key"], json!({"base64": "/w=="}));
        assert_eq!(shown["buckets"][0]["bucket"], at["bucket"]);
        assert_eq!(shown["buckets"][0].get("key"), None);
        assert_eq!((&shown["largest_objects"][0]["key_bytes"], &shown["seconds"]), (&json!(300), &json!(30.0)));
    }
}
