//! The picture of `ombak admin top` as text.

use super::output::shown;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// The width of a name.
const NAME_CHARS_MAX: usize = 60;
/// The counts whose rates are shown.
const COUNTS: [&str; 7] = ["gets", "get_errors", "puts", "put_errors", "refused", "listings", "slow"];

/// What happened each second between two looks at a node.
pub struct Interval([f64; COUNTS.len()]);

impl Interval {
    /// A node that was started again in between begins with zero.
    pub fn between(before: &Value, now: &Value, time: Duration) -> Self {
        let secs = time.as_secs_f64().max(0.001);
        let count = |look: &Value, name: &str| look["counts"][name].as_u64().unwrap_or(0);
        Self(COUNTS.map(|name| {
            let (before, now) = (count(before, name), count(now, name));
            now.checked_sub(before).unwrap_or(now) as f64 / secs
        }))
    }

    pub fn json(&self) -> Value {
        Value::Object(COUNTS.iter().zip(self.0).map(|(name, rate)| ((*name).to_owned(), json!(rate))).collect())
    }

    fn of(&self, name: &str) -> f64 {
        COUNTS.iter().position(|is| *is == name).map_or(0.0, |at| self.0[at])
    }
}

/// The picture, with at most `count_max` entries in each list.
pub fn text(top: &Value, rates: &Interval, count_max: usize) -> String {
    let mut out = String::new();
    let uptime_secs = top["uptime_ms"].as_u64().unwrap_or(0) / 1_000;
    let _ = writeln!(out, "{}   up {uptime_secs} s", top["node"].as_str().unwrap_or_default());
    let active = |name: &str| top["active"][name].as_u64().unwrap_or(0);
    let _ = writeln!(
        out,
        "per second: gets {:.1}, errors {:.1}; puts {:.1}, errors {:.1}; listings and queries {:.1}; refused {:.1}; slow {:.1}",
        rates.of("gets"),
        rates.of("get_errors"),
        rates.of("puts"),
        rates.of("put_errors"),
        rates.of("listings"),
        rates.of("refused"),
        rates.of("slow"),
    );
    let _ = writeln!(
        out,
        "under way:  gets {}; puts {}; listings {}; queries {}",
        active("gets"),
        active("puts"),
        active("listings"),
        active("queries"),
    );
    for name in ["get", "put"] {
        let times = &top["last_minute_us"][name];
        let time = |of: &str| times[of].as_u64().unwrap_or(0) as f64 / 1_000.0;
        let _ = writeln!(
            out,
            "{name}s of the last minute: {}; p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
            times["count"].as_u64().unwrap_or(0),
            time("p50"),
            time("p99"),
            time("max"),
        );
    }
    let hot = &top["hot"];
    let secs = hot["seconds"].as_f64().unwrap_or(0.0);
    for (title, list) in [("HOTTEST KEYS", "keys"), ("HOTTEST BUCKETS", "buckets")] {
        let _ = writeln!(out, "\n{:>12} {:>10}  {title} of the last {secs:.0} s", "requests", "per second");
        for entry in hot[list].as_array().into_iter().flatten().take(count_max) {
            let requests = entry["requests"].as_u64().unwrap_or(0);
            let rate = requests as f64 / secs.max(1.0);
            let _ = writeln!(out, "{:>12} {rate:>10.1}  {}", estimate(requests, &entry["error"]), name_of(entry));
        }
    }
    let _ = writeln!(out, "\n{:>12} {:>10}  LARGEST OBJECTS", "bytes", "");
    for entry in hot["largest_objects"].as_array().into_iter().flatten().take(count_max) {
        let _ = writeln!(out, "{:>12} {:>10}  {}", entry["bytes"].as_u64().unwrap_or(0), "", name_of(entry));
    }
    out.truncate(out.trim_end().len());
    out
}

/// A number of requests. One that may be far too large has a mark.
fn estimate(requests: u64, error: &Value) -> String {
    let is_unsure = error.as_u64().unwrap_or(0) * 10 > requests;
    format!("{}{requests}", if is_unsure { "<=" } else { "" })
}

/// A bucket as `TYPE/BUCKET`, and a key as `TYPE/BUCKET/KEY`, shortened.
fn name_of(entry: &Value) -> String {
    let word = |name: &str| match (entry[name].as_str(), entry[name]["base64"].as_str()) {
        (Some(text), _) => shown(text.as_bytes()),
        (None, Some(bytes)) => STANDARD.decode(bytes).map_or_else(|_| bytes.to_owned(), |bytes| shown(&bytes)),
        (None, None) => String::new(),
    };
    let mut name = format!("{}/{}", word("bucket_type"), word("bucket"));
    if entry.get("key").is_some() {
        let _ = write!(name, "/{}", word("key"));
    }
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_has_rates_times_and_names() {
        let top = json!({
            "node": "n@h", "uptime_ms": 65_000, "counts": {"gets": 30, "puts": 5},
            "active": {"gets": 2}, "last_minute_us": {"get": {"count": 30, "p50": 1_500, "p99": 2_000, "max": 3_000}},
            "hot": {
                "seconds": 10.0,
                "keys": [
                    {"bucket_type": "default", "bucket": "b", "key": "a\u{1b}[31m", "requests": 20, "error": 0},
                    {"bucket_type": "t", "bucket": "b", "key": {"base64": "/w=="}, "requests": 10, "error": 9},
                ],
                "buckets": [{"bucket_type": "default", "bucket": "b", "requests": 30, "error": 0}],
                "largest_objects": [{"bucket_type": "default", "bucket": "b", "key": "k".repeat(300), "bytes": 77}],
            },
        });
        let before = json!({"counts": {"gets": 10, "puts": 9}});
        let rates = Interval::between(&before, &top, Duration::from_secs(2));
        assert_eq!((rates.of("gets"), rates.of("puts")), (10.0, 2.5));
        let picture = text(&top, &rates, 10);
        for line in [
            "n@h   up 65 s",
            "under way:  gets 2; puts 0; listings 0; queries 0",
            "gets of the last minute: 30; p50 1.50 ms, p99 2.00 ms, max 3.00 ms",
            "          20        2.0  default/b/a\\x1b[31m",
            "        <=10        1.0  t/b/\\xff",
            "          30        3.0  default/b",
        ] {
            assert!(picture.lines().any(|is| is == line), "{line}\nin {picture}");
        }
        assert!(picture.contains("per second: gets 10.0, errors 0.0; puts 2.5"), "{picture}");
        assert!(picture.lines().last().is_some_and(|line| line.ends_with("kkk…")), "{picture}");
        assert!(text(&top, &rates, 1).lines().count() < picture.lines().count());
    }
}
