//! The commands `ombak kv` and `ombak admin test`: single values, for first experiments and
//! scripts.

use super::args::{Common, KeyArgs, KvCommand};
use super::failure::Failure;
use super::output::{Output, shown};
use super::pb_client::{connect, failure};
use super::target::Target;
use super::value_json::{name, sibling};
use bytes::Bytes;
use ombak_client::messages::{RpbContent, RpbGetReq};
use ombak_client::{Client, Found};
use ombak_types::Bucket;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The largest value that is read from standard input, in bytes. The limit of the node is lower
/// unless it was raised.
const VALUE_BYTES_MAX: u64 = 1 << 30;

/// The largest number of names that a listing sorts. A longer listing prints names as they arrive.
const SORTED_NAMES_MAX: usize = 100_000;

/// How many bytes of each sibling are shown if there are several.
const PREVIEW_BYTES: usize = 40;

struct At {
    bucket: Bucket,
    key: Bytes,
}

impl At {
    fn new(args: &KeyArgs) -> Self {
        Self { bucket: bucket(&args.bucket_type, &args.bucket), key: bytes(&args.key) }
    }

    fn shown(&self) -> String {
        format!("{}/{}", shown(&self.bucket.name), shown(&self.key))
    }

    fn json(&self, rest: Value) -> Value {
        let mut out = json!({"bucket_type": name(&self.bucket.bucket_type), "bucket": name(&self.bucket.name), "key": name(&self.key)});
        if let (Value::Object(out), Value::Object(rest)) = (&mut out, rest) {
            out.extend(rest);
        }
        out
    }
}

fn bytes(arg: &OsString) -> Bytes {
    Bytes::copy_from_slice(arg.as_bytes())
}

fn bucket(bucket_type: &OsString, bucket: &OsString) -> Bucket {
    Bucket { bucket_type: bytes(bucket_type), name: bytes(bucket) }
}

pub async fn run(command: KvCommand, common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let mut client = connect(&target).await?;
    match command {
        KvCommand::Get { at, sibling } => get(&mut client, &At::new(&at), sibling, out).await,
        KvCommand::Put { at, value, content_type } => {
            let value = read_value(value)?;
            put(&mut client, &At::new(&at), value, content_type, out).await
        }
        KvCommand::Del { at } => delete(&mut client, &At::new(&at), out).await,
        KvCommand::List { bucket: None, bucket_type } => list_buckets(&mut client, &bytes(&bucket_type), out).await,
        KvCommand::List { bucket: Some(name), bucket_type } => {
            list_keys(&mut client, &bucket(&bucket_type, &name), out).await
        }
    }
}

async fn get(client: &mut Client, at: &At, chosen: Option<usize>, out: Output) -> Result<(), Failure> {
    let found = client.get(&at.bucket, &at.key).await.map_err(|e| failure(&e))?;
    let Some(found) = found else {
        if out.json {
            out.document(&at.json(json!({"found": false})))?;
        }
        return Err(Failure::new(format!("{} does not exist", at.shown())).after_result());
    };
    if out.json {
        return out.line(&at.json(found_json(&found)).to_string());
    }
    let sibling = choose(at, &found.siblings, chosen)?;
    out.value(&sibling.value)
}

fn found_json(found: &Found) -> Value {
    use base64::Engine;
    let clock = base64::engine::general_purpose::STANDARD.encode(&found.vclock);
    let siblings: Vec<Value> = found.siblings.iter().map(sibling).collect();
    json!({"found": true, "vclock": clock, "siblings": siblings})
}

/// Chooses the one sibling to print. Several siblings are never printed one after the other,
/// because their boundaries would not be visible.
fn choose<'a>(at: &At, siblings: &'a [RpbContent], chosen: Option<usize>) -> Result<&'a RpbContent, Failure> {
    match (siblings, chosen) {
        ([only], None) => Ok(only),
        (several, Some(n)) => several.get(n.wrapping_sub(1)).ok_or_else(|| {
            Failure::usage(format!("--sibling {n}: {} has {} of them, counted from 1", at.shown(), several.len()))
        }),
        (several, None) => Err(Failure::new(listing(at, several))),
    }
}

fn listing(at: &At, siblings: &[RpbContent]) -> String {
    let mut text =
        format!("{} has {} siblings; choose one with --sibling N, or see all with --json:", at.shown(), siblings.len());
    for (i, s) in siblings.iter().enumerate() {
        let preview = shown(&s.value[..s.value.len().min(PREVIEW_BYTES)]);
        let what = match (s.deleted, s.content_type.as_deref()) {
            (Some(true), _) => "deleted".to_owned(),
            (_, Some(content_type)) => format!("{}, {} bytes: {preview}", shown(content_type), s.value.len()),
            (_, None) => format!("{} bytes: {preview}", s.value.len()),
        };
        text.push_str(&format!("\n  {}  {what}", i + 1));
    }
    text
}

fn read_value(given: Option<OsString>) -> Result<Bytes, Failure> {
    match given {
        Some(value) if value.as_bytes() != b"-" => Ok(Bytes::from(value.into_vec())),
        _ => {
            let mut value = Vec::new();
            std::io::stdin()
                .lock()
                .take(VALUE_BYTES_MAX + 1)
                .read_to_end(&mut value)
                .map_err(|e| Failure::new(format!("cannot read the value from standard input: {e}")))?;
            if value.len() as u64 > VALUE_BYTES_MAX {
                return Err(Failure::new(format!("the value is larger than {VALUE_BYTES_MAX} bytes")));
            }
            Ok(Bytes::from(value))
        }
    }
}

/// Stores a value. The vector clock is read first, so that the value replaces the current one and
/// does not become its sibling.
async fn put(
    client: &mut Client,
    at: &At,
    value: Bytes,
    content_type: Option<String>,
    out: Output,
) -> Result<(), Failure> {
    let guessed = if std::str::from_utf8(&value).is_ok() { "text/plain" } else { "application/octet-stream" };
    let content_type = Bytes::from(content_type.unwrap_or_else(|| guessed.to_owned()));
    let seen = head(client, at).await?;
    let content = RpbContent { value, content_type: Some(content_type), ..RpbContent::default() };
    client.put(&at.bucket, Some(&at.key), content, seen.vclock).await.map_err(|e| failure(&e))?;
    if out.json { out.line(&at.json(json!({"stored": true, "replaced": seen.found})).to_string()) } else { Ok(()) }
}

/// What is known of a key without reading its values.
struct Head {
    found: bool,
    vclock: Option<Bytes>,
}

async fn head(client: &mut Client, at: &At) -> Result<Head, Failure> {
    let request = RpbGetReq {
        bucket: Some(at.bucket.name.clone()),
        key: Some(at.key.clone()),
        r#type: Some(at.bucket.bucket_type.clone()).filter(|_| !at.bucket.is_default_type()),
        head: Some(true),
        deletedvclock: Some(true),
        ..RpbGetReq::default()
    };
    let reply = client.get_with(&request).await.map_err(|e| failure(&e))?;
    let found = reply.content.iter().any(|s| s.deleted != Some(true));
    Ok(Head { found, vclock: reply.vclock })
}

async fn delete(client: &mut Client, at: &At, out: Output) -> Result<(), Failure> {
    let seen = head(client, at).await?;
    if seen.found {
        client.delete(&at.bucket, &at.key, seen.vclock).await.map_err(|e| failure(&e))?;
        return out.result(&at.json(json!({"deleted": true})), || format!("{} deleted", at.shown()));
    }
    if out.json {
        out.document(&at.json(json!({"deleted": false})))?;
    }
    Err(Failure::new(format!("{} does not exist", at.shown())).after_result())
}

async fn list_keys(client: &mut Client, bucket: &Bucket, out: Output) -> Result<(), Failure> {
    let mut names = client.list_keys(bucket).await.map_err(|e| failure(&e))?;
    let mut printer = Names::new(out);
    while let Some(batch) = names.next().await.map_err(|e| failure(&e))? {
        printer.take(batch)?;
    }
    printer.end("keys")
}

async fn list_buckets(client: &mut Client, bucket_type: &[u8], out: Output) -> Result<(), Failure> {
    let mut names = client.list_buckets(bucket_type).await.map_err(|e| failure(&e))?;
    let mut printer = Names::new(out);
    while let Some(batch) = names.next().await.map_err(|e| failure(&e))? {
        printer.take(batch)?;
    }
    printer.end("buckets")
}

/// Prints names: sorted if there are few, otherwise as they arrive.
struct Names {
    out: Output,
    held: Vec<Bytes>,
    overflowed: bool,
}

impl Names {
    fn new(out: Output) -> Self {
        Self { out, held: Vec::new(), overflowed: false }
    }

    fn take(&mut self, batch: Vec<Bytes>) -> Result<(), Failure> {
        self.held.extend(batch);
        // JSON output is one document, so it is written at the end, whatever its size.
        if !self.out.json && (self.overflowed || self.held.len() > SORTED_NAMES_MAX) {
            self.overflowed = true;
            self.print()?;
        }
        Ok(())
    }

    fn print(&mut self) -> Result<(), Failure> {
        let lines: Vec<String> = self.held.drain(..).map(|n| shown(&n)).collect();
        if lines.is_empty() { Ok(()) } else { self.out.line(&lines.join("\n")) }
    }

    fn end(mut self, what: &str) -> Result<(), Failure> {
        self.held.sort_unstable();
        if self.out.json {
            let names: Vec<Value> = self.held.iter().map(|n| name(n)).collect();
            return self.out.line(&json!({ what: names }).to_string());
        }
        self.print()
    }
}

/// The command `ombak admin test`: writes one value and reads it back.
#[expect(clippy::disallowed_methods, reason = "a value that no earlier run has written")]
pub async fn self_test(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let mut client = connect(&target).await?;
    let node = client.server_info().await.map_err(|e| failure(&e))?.node;
    let nonce = format!("{}-{:?}", std::process::id(), std::time::SystemTime::now());
    let at = At { bucket: Bucket::untyped("__riak_client_test__"), key: Bytes::from_static(b"__test_key__") };
    let content = RpbContent { value: Bytes::from(nonce.clone()), ..RpbContent::default() };
    let failed = |what: &str, why: String| Failure::new(format!("Failed to {what} test value: {why}"));
    let seen = head(&mut client, &at).await?;
    client.put(&at.bucket, Some(&at.key), content, seen.vclock).await.map_err(|e| failed("write", e.to_string()))?;
    let found = client.get(&at.bucket, &at.key).await.map_err(|e| failed("read", e.to_string()))?;
    if !found.iter().flat_map(|f| &f.siblings).any(|s| s.value == nonce.as_bytes()) {
        return Err(failed("read", "the value differs from the value that was written".into()));
    }
    out.result(&json!({"node": node, "cycles": 1}), || format!("Successfully completed 1 read/write cycle to '{node}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> At {
        At { bucket: Bucket::untyped("b"), key: Bytes::from_static(b"k\xff") }
    }

    fn content(value: &'static str) -> RpbContent {
        RpbContent { value: Bytes::from_static(value.as_bytes()), ..RpbContent::default() }
    }

    #[test]
    fn of_several_siblings_one_has_to_be_chosen() {
        let two = [content("one"), content("two")];
        assert_eq!(choose(&at(), &two[..1], None), Ok(&two[0]));
        assert_eq!(choose(&at(), &two, Some(2)), Ok(&two[1]));
        assert_eq!(choose(&at(), &two, Some(3)).map_err(|f| f.code), Err(2));
        assert_eq!(choose(&at(), &two, Some(0)).map_err(|f| f.code), Err(2));
        let text = choose(&at(), &two, None).map_err(|f| f.message).expect_err("ambiguous");
        assert!(text.contains("2 siblings") && text.contains("2  3 bytes: two"), "{text}");
    }

    #[test]
    fn names_that_are_no_text_are_escaped() {
        assert_eq!(at().shown(), "b/k\\xff");
        assert_eq!(at().json(json!({"found": false}))["key"], json!({"base64": "a/8="}));
    }
}
