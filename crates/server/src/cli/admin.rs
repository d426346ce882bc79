//! The commands `ombak admin status` and `ombak admin vnode-status`.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use crate::wall_clock::now_secs;
use hyper::Method;
use serde_json::{Value, json};
use std::fmt::Write;

const BACKEND_WIDTH: usize = 9;
const RULE: &str = "-------------------------------------------";

/// Prints all statistics. They are taken from `GET /stats`, so the two cannot differ.
pub async fn status(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let stats = request(&target, Method::GET, "/stats", "").await.map_err(|e| e.into_failure(&target))?;
    out.result(&stats, || {
        let mut text = format!("1-minute stats for '{}'\n{RULE}", plain(&stats["nodename"]));
        for (name, value) in stats.as_object().into_iter().flatten() {
            let _ = write!(text, "\n{name} : {}", plain(value));
        }
        text
    })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Prints one line for each partition, and a line with their totals.
pub async fn vnode_status(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let mut answer =
        request(&target, Method::GET, "/admin/v1/vnodes", "").await.map_err(|e| e.into_failure(&target))?;
    answer["total"] = total(&answer["vnodes"]);
    out.result(&answer, || vnode_text(&answer, now_secs()))
}

const SUMMED: [&str; 11] = [
    "key_count",
    "live_bytes",
    "dead_bytes",
    "files",
    "index_bytes",
    "key_bytes",
    "put_bytes",
    "bytes_written",
    "merge_pending_bytes",
    "read_errors",
    "lost_ranges",
];

fn total(vnodes: &Value) -> Value {
    let sum = |name: &str| -> u64 {
        vnodes.as_array().into_iter().flatten().filter_map(|v| v["status"][name].as_u64()).sum()
    };
    let mut total: serde_json::Map<String, Value> = SUMMED.iter().map(|n| ((*n).to_owned(), json!(sum(n)))).collect();
    let (keys, cost) = (sum("key_count"), sum("index_bytes").saturating_sub(sum("key_bytes")));
    let per_key = (keys > 0).then(|| cost as f64 / keys as f64);
    total.insert("index_bytes_per_key".into(), json!(per_key));
    let (put, written) = (sum("put_bytes"), sum("bytes_written"));
    total.insert("write_amplification".into(), json!((put > 0).then(|| written as f64 / put as f64)));
    let merges = vnodes.as_array().into_iter().flatten().map(|vnode| &vnode["status"]["last_merge"]);
    let last_merge = merges.filter(|merge| !merge.is_null()).max_by_key(|merge| merge["ended_at_secs"].as_u64());
    total.insert("last_merge".into(), last_merge.cloned().unwrap_or_default());
    Value::Object(total)
}

fn vnode_text(answer: &Value, now_secs: u64) -> String {
    let mut text = format!(
        "Vnode status of '{}'\n{:>9}  {:<BACKEND_WIDTH$}{:>12}{:>16}{:>16}{:>7}{:>13}{:>12}{:>15}{:>12}  {}",
        plain(&answer["node"]),
        "partition",
        "backend",
        "keys",
        "live bytes",
        "dead bytes",
        "files",
        "index B/key",
        "written/put",
        "to merge",
        "last merge",
        "state"
    );
    for vnode in answer["vnodes"].as_array().into_iter().flatten() {
        row(&mut text, &plain(&vnode["partition"]), &plain(&vnode["backend"]), &vnode["status"], now_secs);
        for (name, child) in vnode["status"]["backends"].as_object().into_iter().flatten() {
            row(&mut text, name, &plain(&child["backend"]), &child["status"], now_secs);
        }
    }
    row(&mut text, "all", "", &answer["total"], now_secs);
    let _ = write!(
        text,
        "\nindex B/key: bytes of memory that the index needs for each key, without the key itself ({} keys, {} bytes of \
         index, {} of them keys)\n\
         written/put: bytes written to disk for each byte of a put, since the start of the node\n\
         to merge: bytes of the files that wait for a merge\n\
         last merge: time since the last merge after the start of the node",
        answer["total"]["key_count"], answer["total"]["index_bytes"], answer["total"]["key_bytes"]
    );
    text
}

fn row(text: &mut String, partition: &str, backend: &str, s: &Value, now_secs: u64) {
    let ratio = |name: &str| s[name].as_f64().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}"));
    let (per_key, amplification) = (ratio("index_bytes_per_key"), ratio("write_amplification"));
    let last_merge = s["last_merge"]["ended_at_secs"].as_u64();
    let last_merge = last_merge.map_or_else(|| "-".to_owned(), |ended| age(now_secs.saturating_sub(ended)));
    let _ = write!(
        text,
        "\n{partition:>9}  {backend:<BACKEND_WIDTH$}{:>12}{:>16}{:>16}{:>7}{per_key:>13}{amplification:>12}{:>15}{last_merge:>12}  {}",
        plain(&s["key_count"]),
        plain(&s["live_bytes"]),
        plain(&s["dead_bytes"]),
        plain(&s["files"]),
        plain(&s["merge_pending_bytes"]),
        state(s),
    );
}

/// An age in its two largest units.
fn age(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m {}s", secs / 60, secs % 60),
        3600..86_400 => format!("{}h {}m", secs / 3600, secs % 3600 / 60),
        _ => format!("{}d {}h", secs / 86_400, secs % 86_400 / 3600),
    }
}

/// The health of a store in a few words for the operator.
fn state(s: &Value) -> String {
    let count = |name: &str| s[name].as_u64().filter(|count| *count > 0);
    match (s["poisoned"].as_str(), s["disk_full"].as_bool()) {
        (Some(why), _) => return format!("takes no writes: {why}"),
        (None, Some(true)) => return "takes no writes: its disk is full".to_owned(),
        (None, _) => {}
    }
    let plural = |count: u64, ending: &'static str| if count == 1 { "" } else { ending };
    let errors = count("read_errors").map(|errors| format!("{errors} read error{}", plural(errors, "s")));
    let losses = count("lost_ranges").map(|losses| format!("incomplete: {losses} known loss{}", plural(losses, "es")));
    let known: Vec<String> = errors.into_iter().chain(losses).collect();
    if known.is_empty() { "ok".to_owned() } else { known.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_its_two_largest_units() {
        for (secs, expected) in [(0, "0s"), (59, "59s"), (61, "1m 1s"), (7199, "1h 59m"), (200_000, "2d 7h")] {
            assert_eq!(age(secs), expected);
        }
    }

    #[test]
    fn the_state_names_what_is_wrong() {
        for (status, expected) in [
            (json!({"read_errors": 0, "disk_full": false, "poisoned": null}), "ok"),
            (json!({"read_errors": 2, "disk_full": false, "poisoned": null}), "2 read errors"),
            (json!({"read_errors": 1, "lost_ranges": 3, "poisoned": null}), "1 read error; incomplete: 3 known losses"),
            (json!({"read_errors": 2, "disk_full": true, "poisoned": null}), "takes no writes: its disk is full"),
            (
                json!({"read_errors": 2, "disk_full": true, "poisoned": "a sync failed"}),
                "takes no writes: a sync failed",
            ),
        ] {
            assert_eq!(state(&status), expected);
        }
    }

    #[test]
    fn the_total_adds_up() {
        let status = |keys, index, key| json!({"status": {"key_count": keys, "index_bytes": index, "key_bytes": key}});
        let total = total(&json!([status(1, 100, 60), status(3, 200, 120)]));
        assert_eq!((&total["key_count"], &total["index_bytes_per_key"]), (&json!(4), &json!(30.0)));
        assert_eq!(super::total(&json!([]))["index_bytes_per_key"], Value::Null);
    }
}
