//! The command `ombak admin fold`: what operators ask of many objects at once.

use super::args::Common;
use super::failure::Failure;
use super::fold_progress::watched;
use super::key_jobs::{self, Change, KeyJob};
use super::key_names::shown_key;
use super::output::{Output, shown};
use super::target::Target;
use super::value_json::name;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

pub(super) const PATH: &str = "/admin/v1/fold";
/// How long the node may take. A fold ends there after an hour.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(3_660);

/// The command with what all folds have in common. Users see the doc comments in `--help`.
#[derive(Debug, Args)]
pub struct FoldCall {
    /// Print on standard error how far the fold is. On a terminal this is done anyway. Ctrl-C ends
    /// the fold.
    #[arg(long, global = true)]
    progress: bool,
    #[command(subcommand)]
    command: FoldCommand,
}

/// The folds. Users see the doc comments in `--help`.
#[derive(Debug, Subcommand)]
enum FoldCommand {
    /// Count the objects of a bucket, with their bytes and siblings.
    Stats {
        #[command(flatten)]
        of: FoldArgs,
    },
    /// Print the keys whose objects have more siblings than a number.
    Siblings {
        #[command(flatten)]
        of: FoldArgs,
        /// The number.
        #[arg(long, value_name = "N", default_value_t = 1)]
        above: u64,
    },
    /// Print the keys whose objects have more bytes than a number.
    Sizes {
        #[command(flatten)]
        of: FoldArgs,
        /// The number.
        #[arg(long, value_name = "BYTES")]
        above: u64,
    },
    /// Print the keys whose objects are tombstones.
    Tombstones {
        #[command(flatten)]
        of: FoldArgs,
    },
    /// Print the buckets of all types.
    Buckets,
    /// Delete the living objects, except those that are written while this goes on.
    Erase {
        #[command(flatten)]
        of: FoldArgs,
        /// Really erase. Without this, the command says how many objects are selected.
        #[arg(long)]
        yes: bool,
    },
    /// Remove tombstones now, whatever delete_mode says.
    Reap {
        #[command(flatten)]
        of: FoldArgs,
    },
    /// Read objects from all replicas, so that those that differ are repaired.
    Repair {
        #[command(flatten)]
        of: FoldArgs,
    },
    /// Print the jobs of this node that erase, reap, repair and drop, and how far they are.
    Jobs,
    /// Let a job rest.
    Pause {
        /// The number of the job.
        job: u64,
    },
    /// Let a job go on that was paused.
    Resume {
        /// The number of the job.
        job: u64,
    },
    /// End a job. What it has not done stays as it is.
    Cancel {
        /// The number of the job.
        job: u64,
    },
}

/// Which objects a fold visits.
#[derive(Debug, Args)]
pub struct FoldArgs {
    /// The bucket.
    bucket: OsString,
    /// The bucket type.
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    bucket_type: Option<OsString>,
    /// Only this key and later ones.
    #[arg(long, value_name = "KEY")]
    first_key: Option<OsString>,
    /// Only this key and earlier ones.
    #[arg(long, value_name = "KEY")]
    last_key: Option<OsString>,
    /// Only what was written at this time or later.
    #[arg(long, value_name = "UNIX_SECONDS")]
    since: Option<u32>,
    /// Only what was written at this time or earlier.
    #[arg(long, value_name = "UNIX_SECONDS")]
    until: Option<u32>,
}

impl FoldArgs {
    /// The body of a request, which may have another member.
    pub(super) fn body(&self, member: Option<(&str, &str)>) -> Value {
        let mut body = json!({ "bucket": name(self.bucket.as_bytes()) });
        if let Some((field, value)) = member {
            body[field] = json!(value);
        }
        let names = [("bucket_type", &self.bucket_type), ("first_key", &self.first_key), ("last_key", &self.last_key)];
        for (field, value) in names {
            if let Some(value) = value {
                body[field] = name(value.as_bytes());
            }
        }
        for (field, secs) in [("since_secs", self.since), ("until_secs", self.until)] {
            if let Some(secs) = secs {
                body[field] = json!(secs);
            }
        }
        body
    }
}

/// Runs a fold and prints what it has gathered, or a command about jobs.
pub async fn run(FoldCall { progress, command }: &FoldCall, common: &Common, out: Output) -> Result<(), Failure> {
    let begin = async |job, of, yes| key_jobs::begin(job, of, (yes, *progress), common, out).await;
    let gather = |of: &FoldArgs, fold| of.body(Some(("fold", fold)));
    let (mut body, text): (Value, fn(&Value) -> String) = match command {
        FoldCommand::Stats { of } => (gather(of, "stats"), stats_text),
        FoldCommand::Siblings { of, .. } => (gather(of, "siblings"), |answer| keys_text(answer, "siblings")),
        FoldCommand::Sizes { of, .. } => (gather(of, "sizes"), |answer| keys_text(answer, "bytes")),
        FoldCommand::Tombstones { of } => (gather(of, "tombstones"), |answer| keys_text(answer, "")),
        FoldCommand::Buckets => (json!({ "fold": "buckets" }), buckets_text),
        FoldCommand::Erase { of, yes } => return begin(KeyJob::Erase, of, *yes).await,
        FoldCommand::Reap { of } => return begin(KeyJob::Reap, of, true).await,
        FoldCommand::Repair { of } => return begin(KeyJob::Repair, of, true).await,
        FoldCommand::Jobs => return key_jobs::show(common, out).await,
        FoldCommand::Pause { job } => return key_jobs::change(Change::Pause, *job, common, out).await,
        FoldCommand::Resume { job } => return key_jobs::change(Change::Resume, *job, common, out).await,
        FoldCommand::Cancel { job } => return key_jobs::change(Change::Cancel, *job, common, out).await,
    };
    if let FoldCommand::Siblings { above, .. } | FoldCommand::Sizes { above, .. } = command {
        body["above"] = json!(above);
    }
    let target = Target::find(common)?;
    let answer = watched(&target, PATH, body, *progress).await?;
    out.result(&answer, || text(&answer))
}

fn stats_text(stats: &Value) -> String {
    let mut text = format!("objects {}\nbytes   {}", stats["objects"], stats["bytes"]);
    for size in stats["sizes"].as_array().into_iter().flatten() {
        let digits = number(&size["magnitude"]) + 1;
        // Writing into a string does not fail.
        let _ = write!(text, "\n{:>11} objects have a size of {digits} digits", number(&size["objects"]));
    }
    for siblings in stats["siblings"].as_array().into_iter().flatten() {
        let _ = write!(text, "\n{:>11} objects have {} siblings", number(&siblings["objects"]), siblings["siblings"]);
    }
    text
}

/// A number of an answer.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn keys_text(answer: &Value, unit: &str) -> String {
    let keys = answer["keys"].as_array().map_or(&[][..], Vec::as_slice);
    if keys.is_empty() {
        return "no such object".into();
    }
    let line = |key: &Value| match key["value"].as_u64() {
        Some(number) => format!("{number:>11} {unit}  {}", shown_key(key)),
        None => shown_key(key),
    };
    keys.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn buckets_text(answer: &Value) -> String {
    let buckets = answer["buckets"].as_array().map_or(&[][..], Vec::as_slice);
    if buckets.is_empty() {
        return "no bucket holds an object".into();
    }
    let word = |value: &Value| match value.as_str() {
        Some(text) => shown(text.as_bytes()),
        None => format!("base64:{}", value["base64"].as_str().unwrap_or_default()),
    };
    let line = |bucket: &Value| format!("{}/{}", word(&bucket["bucket_type"]), word(&bucket["bucket"]));
    buckets.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_lines() {
        let key = |value: Option<u64>| match value {
            Some(value) => json!({ "bucket_type": "default", "bucket": "b", "key": "k", "value": value }),
            None => json!({ "bucket_type": "t", "bucket": "b", "key": { "base64": "/w==" } }),
        };
        let answer = json!({ "keys": [key(Some(3))] });
        assert_eq!(keys_text(&answer, "siblings"), "          3 siblings  default/b/k");
        assert_eq!(keys_text(&json!({ "keys": [key(None)] }), ""), "t/b/base64:/w==");
        assert_eq!(keys_text(&json!({ "keys": [] }), ""), "no such object");
        let stats = json!({
            "objects": 3, "bytes": 250, "sizes": [{ "magnitude": 1, "objects": 3 }],
            "siblings": [{ "siblings": 2, "objects": 3 }],
        });
        let expected =
            "objects 3\nbytes   250\n          3 objects have a size of 2 digits\n          3 objects have 2 siblings";
        assert_eq!(stats_text(&stats), expected);
        assert_eq!(buckets_text(&json!({ "buckets": [{ "bucket_type": "t", "bucket": "b" }] })), "t/b");
    }
}
