//! The commands that let folds erase, reap and repair keys, and that drop a bucket.

use super::admin_client::{request, request_within};
use super::args::Common;
use super::failure::Failure;
use super::fold::{ANSWER_TIMEOUT, FoldArgs, PATH as FOLD_PATH};
use super::fold_progress::watched;
use super::output::{Output, shown};
use super::target::Target;
use super::value_json::name;
use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

const PATH: &str = "/admin/v1/key-jobs";
const STATE_PATH: &str = "/admin/v1/key-jobs/state";
const DROP_PATH: &str = "/admin/v1/key-jobs/drop";
/// How often a command that waits for a job looks at it.
const LOOK: Duration = Duration::from_millis(500);

/// What happens to the keys that a fold finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyJob {
    Erase,
    Reap,
    Repair,
}

impl KeyJob {
    const fn word(self) -> &'static str {
        match self {
            Self::Erase => "erase",
            Self::Reap => "reap",
            Self::Repair => "repair",
        }
    }

    const fn participle(self) -> &'static str {
        match self {
            Self::Erase => "erased",
            Self::Reap => "reaped",
            Self::Repair => "repaired",
        }
    }
}

/// What can be done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Pause,
    Resume,
    Cancel,
}

/// Commands about a bucket. Users see the doc comments in `--help`.
#[derive(Debug, Subcommand)]
pub enum BucketCommand {
    /// Erase everything that a bucket has now, and remove the tombstones. What is written later
    /// stays. The command shows how far that is; without it, the node goes on.
    Drop(DropArgs),
}

/// The arguments of a drop.
#[derive(Debug, Args)]
pub struct DropArgs {
    /// The bucket type, a slash and the bucket. The type of a bucket without one is 'default'.
    #[arg(value_name = "TYPE/BUCKET")]
    bucket: OsString,
    /// Really drop it. Without this, the command says what the bucket has.
    #[arg(long)]
    yes: bool,
    /// Do not wait for the end.
    #[arg(long)]
    no_wait: bool,
}

/// Lets a fold begin a job. To erase needs the consent of `yes`; otherwise the objects are counted.
pub async fn begin(
    job: KeyJob,
    of: &FoldArgs,
    (yes, progress): (bool, bool),
    common: &Common,
    out: Output,
) -> Result<(), Failure> {
    let target = Target::find(common)?;
    if job == KeyJob::Erase && !yes {
        let stats = watched(&target, FOLD_PATH, of.body(Some(("fold", "stats"))), progress).await?;
        let text = || {
            let objects = &stats["objects"];
            format!("this selects {objects} objects, tombstones included: --yes erases what is living of them")
        };
        return out.result(&json!({ "selected": stats["objects"] }), text);
    }
    let answer = watched(&target, PATH, of.body(Some(("job", job.word()))), progress).await?;
    out.result(&answer, || match answer["keys"].as_u64() {
        Some(0) | None => format!("there is nothing to {}", job.word()),
        Some(keys) => {
            let (are, done) = if keys == 1 { ("key is", job.participle()) } else { ("keys are", job.participle()) };
            format!("{keys} {are} being {done}: 'ombak admin fold jobs' shows how far that is")
        }
    })
}

/// Prints the jobs.
pub async fn show(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let answer = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
    out.result(&answer, || jobs_text(&answer))
}

/// Pauses, resumes or cancels a job, and prints all of them.
pub async fn change(change: Change, job: u64, common: &Common, out: Output) -> Result<(), Failure> {
    let action = match change {
        Change::Pause => "pause",
        Change::Resume => "resume",
        Change::Cancel => "cancel",
    };
    let target = Target::find(common)?;
    let answer = post(&target, STATE_PATH, &json!({ "action": action, "job": job })).await?;
    out.result(&answer, || jobs_text(&answer))
}

/// Runs a command about a bucket.
pub async fn bucket(BucketCommand::Drop(args): &BucketCommand, common: &Common, out: Output) -> Result<(), Failure> {
    let (bucket_type, bucket) = type_and_bucket(args.bucket.as_bytes())?;
    let names = json!({ "bucket_type": name(bucket_type), "bucket": name(bucket) });
    let target = Target::find(common)?;
    if !args.yes {
        let mut body = names;
        body["fold"] = json!("stats");
        let stats = watched(&target, FOLD_PATH, body, false).await?;
        let text = || {
            let (objects, bytes) = (&stats["objects"], &stats["bytes"]);
            format!("the bucket has {objects} objects, tombstones included, with {bytes} bytes: --yes drops it")
        };
        return out.result(&json!({ "objects": stats["objects"], "bytes": stats["bytes"] }), text);
    }
    let begun = post(&target, DROP_PATH, &names).await?;
    let job = begun["job"].as_u64().unwrap_or_default();
    if args.no_wait {
        return out.result(&begun, || format!("job {job} drops it: 'ombak admin fold jobs' shows how far that is"));
    }
    wait_for(&target, job, out).await
}

/// Shows how far a job is until it has ended.
async fn wait_for(target: &Target, id: u64, out: Output) -> Result<(), Failure> {
    let mut shown = String::new();
    loop {
        let answer = request(target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(target))?;
        let jobs = answer["jobs"].as_array().into_iter().flatten();
        let job = jobs.into_iter().find(|job| job["job"] == id);
        let job = job.ok_or_else(|| Failure::new(format!("the node does not know job {id} any more")))?;
        let line = job_text(job);
        match job["state"].as_str() {
            Some("done") => return out.result(job, || line),
            Some("cancelled" | "lost") => return Err(Failure::new(line)),
            _ if line != shown && !out.json => out.line(&line)?,
            _ => {}
        }
        shown = line;
        tokio::time::sleep(LOOK).await;
    }
}

fn type_and_bucket(words: &[u8]) -> Result<(&[u8], &[u8]), Failure> {
    let slash = words.iter().position(|byte| *byte == b'/').filter(|at| *at > 0 && *at + 1 < words.len());
    let wrong = || Failure::usage("name the bucket as TYPE/BUCKET; a bucket without a type has the type 'default'");
    let at = slash.ok_or_else(wrong)?;
    Ok((&words[..at], &words[at + 1..]))
}

async fn post(target: &Target, path: &str, body: &Value) -> Result<Value, Failure> {
    let answer = request_within(ANSWER_TIMEOUT, target, path, &body.to_string()).await;
    answer.map_err(|e| e.into_failure(target))
}

fn jobs_text(answer: &Value) -> String {
    let jobs = answer["jobs"].as_array().map_or(&[][..], Vec::as_slice);
    if jobs.is_empty() {
        return "no fold has begun a job on this node".into();
    }
    jobs.iter().map(job_text).collect::<Vec<_>>().join("\n")
}

fn job_text(job: &Value) -> String {
    let word = |value: &Value| match value.as_str() {
        Some(text) => shown(text.as_bytes()),
        None => format!("base64:{}", value["base64"].as_str().unwrap_or_default()),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let bucket = format!("{}/{}", word(&job["bucket_type"]), word(&job["bucket"]));
    let (kind, state) = (text(&job["kind"]), text(&job["state"]));
    let mut line = format!("job {} {kind} {bucket}: {state}, {} of {} keys done", job["job"], job["done"], job["keys"]);
    if job["changed"].as_u64().is_some_and(|changed| changed > 0) {
        line += &format!(", {} changed meanwhile and stay", job["changed"]);
    }
    if let Some(drop) = job["part_of"].as_u64() {
        line += &format!(", part of job {drop}");
    }
    if let Some(damage) = job["damage"].as_str().filter(|_| state != "lost") {
        line += &format!(", some of its keys cannot be read ({damage}): run its fold again at its end");
    }
    if let Some(why) = job["why"].as_str() {
        line += &match &state[..] {
            "lost" => format!(", {why}: run its fold again"),
            _ => format!(", waits: {why}"),
        };
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_a_type_and_a_name() {
        assert_eq!(type_and_bucket(b"maps/a/b").unwrap(), (&b"maps"[..], &b"a/b"[..]));
        for wrong in [&b"carts"[..], b"/carts", b"maps/", b""] {
            assert!(type_and_bucket(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_job_is_a_line() {
        let mut job = json!({
            "job": 7, "kind": "erase", "bucket_type": "default", "bucket": "b", "state": "working", "done": 3,
            "keys": 10, "changed": 0, "part_of": null, "why": null,
        });
        assert_eq!(job_text(&job), "job 7 erase default/b: working, 3 of 10 keys done");
        (job["changed"], job["part_of"], job["why"]) = (json!(1), json!(6), json!("overload"));
        let expected = "job 7 erase default/b: working, 3 of 10 keys done, 1 changed meanwhile and stay, part of job 6, \
                        waits: overload";
        assert_eq!(job_text(&job), expected);
        assert_eq!(jobs_text(&json!({ "jobs": [] })), "no fold has begun a job on this node");
    }
}
