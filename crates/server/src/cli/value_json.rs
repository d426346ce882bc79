//! Names and values as JSON. Bytes that are valid UTF-8 become strings; other bytes become
//! `{"base64":"…"}`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ombak_client::messages::RpbContent;
use serde_json::{Value, json};

/// A bucket type, bucket, key or any other byte string.
pub fn name(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({"base64": STANDARD.encode(bytes)}),
    }
}

/// A sibling with its metadata.
pub fn sibling(s: &RpbContent) -> Value {
    let optional = |bytes: &Option<bytes::Bytes>| bytes.as_deref().map(name);
    let pair = |p: &ombak_client::messages::RpbPair| json!([name(&p.key), optional(&p.value)]);
    json!({
        "value": name(&s.value),
        "deleted": s.deleted.unwrap_or(false),
        "content_type": optional(&s.content_type),
        "charset": optional(&s.charset),
        "content_encoding": optional(&s.content_encoding),
        "vtag": optional(&s.vtag),
        "last_modified_us": s.last_mod.map(|secs| u64::from(secs) * 1_000_000 + u64::from(s.last_mod_usecs.unwrap_or(0))),
        "links": s.links.iter().map(|l| json!({
            "bucket": optional(&l.bucket), "key": optional(&l.key), "tag": optional(&l.tag),
        })).collect::<Vec<_>>(),
        "user_meta": s.usermeta.iter().map(pair).collect::<Vec<_>>(),
        "indexes": s.indexes.iter().map(pair).collect::<Vec<_>>(),
    })
}
