//! The commands `ombak admin scrub`.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use crate::table::table;
use crate::wall_clock::now_secs;
use clap::Subcommand;
use hyper::Method;
use serde::Deserialize;
use serde_json::json;

const PATH: &str = "/admin/v1/scrub";

/// The commands. Users see the doc comments in `--help`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ScrubCommand {
    /// Print how far scrubbing has come in each store, and what it has found.
    Status,
    /// Begin a round over everything now, at the rate of scrub.bytes_per_second_max.
    Start,
    /// Pause until the node stops or 'resume'.
    Pause,
    /// Go on after a pause.
    Resume,
}

/// Runs a command. Each prints the state of scrubbing.
pub async fn run(command: ScrubCommand, common: &Common, out: Output) -> Result<(), Failure> {
    let action = match command {
        ScrubCommand::Status => None,
        ScrubCommand::Start => Some("start"),
        ScrubCommand::Pause => Some("pause"),
        ScrubCommand::Resume => Some("resume"),
    };
    let target = Target::find(common)?;
    let answer = match action {
        None => request(&target, Method::GET, PATH, "").await,
        Some(action) => request(&target, Method::POST, PATH, &json!({ "action": action }).to_string()).await,
    };
    let answer = answer.map_err(|e| e.into_failure(&target))?;
    let report: Report = serde_json::from_value(answer.clone())
        .map_err(|e| Failure::new(format!("the node's answer is not understood: {e}")))?;
    out.result(&answer, || report.text(now_secs()))
}

#[derive(Deserialize)]
struct Report {
    state: String,
    bytes_per_second: Option<u64>,
    interval_secs: u64,
    round_began_secs: Option<u64>,
    next_round_secs: Option<u64>,
    stores: Vec<Store>,
}

#[derive(Deserialize)]
struct Store {
    partition: u32,
    last_full_secs: Option<u64>,
    done: bool,
    round_bytes: u64,
    bytes: u64,
    damaged: u64,
    obsolete: u64,
    places: u64,
    repaired: u64,
    waiting: u64,
    not_repairable: u64,
}

impl Report {
    fn text(&self, now_secs: u64) -> String {
        let mut lines = vec![self.headline(now_secs)];
        if self.stores.is_empty() {
            lines.push("No store of this node has anything on a disk.".into());
            return lines.join("\n");
        }
        let head = ["partition", "read last", "this round", "size", "damaged", "repaired", "waiting", "not repairable"];
        let rows: Vec<[String; 8]> = self.stores.iter().map(|store| store.row(now_secs)).collect();
        lines.push(table(head, &rows));
        let sum = |count: fn(&Store) -> u64| self.stores.iter().map(count).sum::<u64>();
        let (obsolete, places) = (sum(|store| store.obsolete), sum(|store| store.places));
        if obsolete > 0 {
            lines.push(format!("{obsolete} damaged records were found that nothing needs any more."));
        }
        if places > 0 {
            lines.push(format!("{places} damaged places of other kinds were found: see the log for each of them."));
        }
        if sum(|store| store.not_repairable) > 0 {
            let list = "'ombak admin cluster unreadable-keys' lists what no other node could repair.";
            lines.push(list.into());
        }
        lines.join("\n")
    }

    fn headline(&self, now_secs: u64) -> String {
        let round = |began: u64| format!("the round began {} ago", period(now_secs.saturating_sub(began)));
        let round = self.round_began_secs.map_or_else(|| "no round has begun".into(), round);
        let every = period(self.interval_secs);
        match (self.state.as_str(), self.bytes_per_second) {
            ("off", _) => "Scrubbing is off (scrub.enabled).".into(),
            ("reading", Some(rate)) => format!("Scrubbing reads {}/s, everything in {every}; {round}.", size(rate)),
            ("reading", None) => format!("Scrubbing reads as fast as it can; {round}."),
            ("waiting", _) => {
                let next = self.next_round_secs.map_or(0, |next| next.saturating_sub(now_secs));
                format!("Scrubbing has read everything; the next round begins in {}.", period(next))
            }
            (state, _) => format!("Scrubbing is {state}; {round}."),
        }
    }
}

impl Store {
    fn row(&self, now_secs: u64) -> [String; 8] {
        let last = |secs: u64| format!("{} ago", period(now_secs.saturating_sub(secs)));
        let percent =
            self.round_bytes.saturating_mul(100).checked_div(self.bytes).map_or(100, |percent| percent.min(99));
        [
            self.partition.to_string(),
            self.last_full_secs.map_or_else(|| "never".into(), last),
            if self.done { "done".into() } else { format!("{percent} %") },
            size(self.bytes),
            self.damaged.to_string(),
            self.repaired.to_string(),
            self.waiting.to_string(),
            self.not_repairable.to_string(),
        ]
    }
}

/// A time in its largest whole unit.
fn period(secs: u64) -> String {
    match secs {
        0..120 => format!("{secs} s"),
        120..7_200 => format!("{} min", secs / 60),
        7_200..172_800 => format!("{} h", secs / 3_600),
        _ => format!("{} days", secs / 86_400),
    }
}

/// A number of bytes with a unit.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn report(state: &str, stores: Value) -> Report {
        let answer = json!({
            "state": state, "bytes_per_second": 433_000, "interval_secs": 2_592_000, "round_began_secs": 1_000,
            "next_round_secs": 2_593_000, "bytes_read": 5, "stores": stores
        });
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn each_store_has_a_row_and_damage_is_explained() {
        let store = json!({
            "partition": 7, "last_full_secs": null, "done": false, "round_bytes": 512, "bytes": 2_048, "damaged": 3,
            "obsolete": 2, "places": 1, "repaired": 2, "waiting": 1, "not_repairable": 1
        });
        let text = report("reading", json!([store])).text(8_200);
        let expected = "\
Scrubbing reads 422.9 KB/s, everything in 30 days; the round began 2 h ago.
+---------+---------+----------+------+-------+--------+-------+--------------+
|partition|read last|this round| size |damaged|repaired|waiting|not repairable|
+---------+---------+----------+------+-------+--------+-------+--------------+
|    7    |  never  |   25 %   |2.0 KB|   3   |   2    |   1   |      1       |
+---------+---------+----------+------+-------+--------+-------+--------------+
2 damaged records were found that nothing needs any more.
1 damaged places of other kinds were found: see the log for each of them.
'ombak admin cluster unreadable-keys' lists what no other node could repair.";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_headline_says_what_goes_on() {
        let headline = |state: &str| report(state, json!([])).headline(2_000_000);
        assert_eq!(headline("off"), "Scrubbing is off (scrub.enabled).");
        assert_eq!(headline("waiting"), "Scrubbing has read everything; the next round begins in 6 days.");
        assert_eq!(headline("paused"), "Scrubbing is paused; the round began 23 days ago.");
    }
}
