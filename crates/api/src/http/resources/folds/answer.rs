//! The documents of folds.

use super::question::Asked;
use crate::folds;
use crate::http::names::json_name;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ombak_kv::folds::{FoldResult, FoldStats, Found, FoundKey};
use ombak_tictac::{Tree, compressed_branches, riak_clock};
use ombak_types::Bucket;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a byte takes that is written as codes of characters, at most: four characters for three
/// bytes, and up to four characters for each of these.
const CODE_BYTES: u64 = 6;
/// What a branch without keys takes in a document.
const BRANCH_BYTES: u64 = 128;

/// About how many bytes the document takes at most.
pub(super) fn bytes_max(result: &FoldResult) -> u64 {
    let names = 64 * result.keys.len() as u64;
    CODE_BYTES * (result.bytes + result.root.len() as u64)
        + names
        + BRANCH_BYTES * u64::from(result.tree.size().branches())
}

/// The document that answers a question.
pub(super) fn document(asked: &Asked, result: &FoldResult) -> String {
    match asked {
        Asked::Root => format!("{{\"root\":{}}}", codes(&result.root)),
        Asked::Branches(numbers) => branches(numbers, |number| codes(&result.tree.branch(number))),
        Asked::NoBranches(numbers) => branches(numbers, |_| "[]".to_owned()),
        Asked::KeysClocks => format!("{{\"keys-clocks\":[{}]}}", joined(result.keys.iter().map(key_clock))),
        Asked::Tree => tree(&result.tree),
        Asked::Results => format!("{{\"results\":[{}]}}", joined(result.keys.iter().map(key_value))),
        Asked::Stats => stats(&result.stats),
        Asked::Count => dispatched(folds::dispatched(result)),
        Asked::Buckets => {
            let buckets = folds::typed_first(&result.buckets).map(|bucket| format!("{{{}}}", bucket_members(bucket)));
            format!("{{\"results\":[{}]}}", joined(buckets))
        }
        // These have no result of a fold.
        Asked::Change(_) => dispatched(0),
        Asked::Nothing(document) => document.clone(),
    }
}

/// The document of a number of objects that are changed or sent.
pub(super) fn dispatched(count: u64) -> String {
    format!("{{\"dispatched_count\":{count}}}")
}

fn branches(numbers: &[u32], shown: impl Fn(u32) -> String) -> String {
    let branch = |number: &u32| format!("{{\"branch-id\":{number},\"branch\":{}}}", shown(*number));
    format!("{{\"branches\":[{}]}}", joined(numbers.iter().map(branch)))
}

/// Bytes as Riak writes them in these documents: the codes of the characters of their base64.
fn codes(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = String::with_capacity(text.len() * 4 + 2);
    for (at, code) in text.bytes().enumerate() {
        // Writing to a text does not fail.
        let _ = write!(out, "{}{code}", if at == 0 { "[" } else { "," });
    }
    if out.is_empty() { "[]".to_owned() } else { out + "]" }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

fn text(name: &[u8]) -> String {
    ascii(&Value::String(json_name(name)).to_string())
}

/// JSON whose characters are all ASCII, as Riak writes it.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

fn bucket_members(bucket: &Bucket) -> String {
    let name = format!("\"bucket\":{}", text(&bucket.name));
    if bucket.is_default_type() { name } else { format!("\"bucket-type\":{},{name}", text(&bucket.bucket_type)) }
}

fn key_clock(found: &FoundKey) -> String {
    let clock = match &found.found {
        Found::Clock(clock) => codes(&riak_clock(clock)),
        Found::Number(_) => "[]".to_owned(),
    };
    format!("{{{},\"key\":{},\"clock\":{clock}}}", bucket_members(&found.bucket), text(&found.key))
}

fn key_value(found: &FoundKey) -> String {
    let value = match found.found {
        Found::Number(number) => number,
        Found::Clock(_) => 0,
    };
    format!("{{\"key\":{},\"value\":{value}}}", text(&found.key))
}

fn tree(tree: &Tree) -> String {
    let branches = compressed_branches(tree, 0..tree.size().branches());
    let branches = branches.map(|(number, branch)| format!("\"{number}\":{}", codes(&branch)));
    format!("{{\"tree\":{{\"level1\":{},\"level2\":{{{}}}}}}}", codes(&tree.root()), joined(branches))
}

fn stats(stats: &FoldStats) -> String {
    let FoldStats { objects, bytes, sizes, siblings } = stats;
    let (sizes, siblings) = (orders(sizes), orders(siblings));
    format!("{{\"total_count\":{objects},\"total_size\":{bytes},\"sizes\":{sizes},\"siblings\":{siblings}}}")
}

fn orders(orders: &BTreeMap<u32, u64>) -> String {
    if orders.is_empty() {
        return "[]".to_owned();
    }
    format!("{{{}}}", joined(orders.iter().map(|(order, count)| format!("\"{order}\":{count}"))))
}
