//! The command `ombak admin repair-2i`, in Riak's words.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use clap::Args;
use hyper::Method;
use serde_json::{Value, json};
use std::fmt::Write;

const PATH: &str = "/admin/v1/index-repair";

/// The arguments. Users see the doc comments in `--help`.
#[derive(Debug, Args)]
pub struct Repair2iArgs {
    /// The percentage of the time in which it works, from 0 to 100 [default: 100]. Without anything
    /// else while a repair is under way, it changes its speed.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=100))]
    pub speed: Option<u32>,
    /// The partitions to repair, 'status' or 'kill' [default: all partitions of the node].
    #[arg(value_name = "PARTITION")]
    pub words: Vec<String>,
}

/// What the words ask for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Status,
    Kill,
    Partitions(Vec<u32>),
}

fn wanted(words: &[String]) -> Result<Wanted, Failure> {
    match words {
        [word] if word == "status" => Ok(Wanted::Status),
        [word] if word == "kill" => Ok(Wanted::Kill),
        words => {
            let number = |word: &String| {
                let wrong =
                    || Failure::usage(format!("{word}: name partitions by their numbers, or 'status' or 'kill'"));
                word.parse().map_err(|_| wrong())
            };
            words.iter().map(number).collect::<Result<_, _>>().map(Wanted::Partitions)
        }
    }
}

pub async fn run(args: &Repair2iArgs, common: &Common, out: Output) -> Result<(), Failure> {
    let wanted = wanted(&args.words)?;
    let target = Target::find(common)?;
    let post = |body: Value| {
        let target = &target;
        async move {
            let answer = request(target, Method::POST, PATH, &body.to_string()).await;
            answer.map_err(|e| e.into_failure(target))
        }
    };
    match wanted {
        Wanted::Status => {
            let status = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
            out.result(&status, || status_text(&status))
        }
        Wanted::Kill => {
            let answer = post(json!({ "action": "kill" })).await?;
            out.result(&answer, || match answer["done"] == true {
                true => "2I repair process has been killed".into(),
                false => "2I repair is not running".into(),
            })
        }
        Wanted::Partitions(partitions) => {
            if let (Some(speed), true) = (args.speed, partitions.is_empty()) {
                let answer = post(json!({ "action": "set-speed", "speed": speed })).await?;
                if answer["done"] == true {
                    return out.result(&answer, || format!("2I repair speed set to {speed}"));
                }
            }
            let answer = post(json!({ "action": "start", "partitions": partitions, "speed": args.speed })).await?;
            if answer["done"] != true {
                let text = "2I repair is already running: 'ombak admin repair-2i status' shows how far it is";
                return Err(Failure::new(text));
            }
            out.result(&answer, || started_text(&answer))
        }
    }
}

fn started_text(answer: &Value) -> String {
    let mut text = String::from("Will repair 2I data on the following partitions:");
    for partition in answer["chosen"].as_array().into_iter().flatten() {
        // Writing into a string does not fail.
        let _ = write!(text, "\n\t{partition}");
    }
    text.push_str("\n'ombak admin repair-2i status' shows how far it is");
    text
}

fn status_text(status: &Value) -> String {
    let state = match status["state"].as_str() {
        Some("running") => "2I repair status is running:",
        Some("finished") => "2I repair is not running. The last one has finished:",
        Some("killed") => "2I repair is not running. The last one was killed:",
        _ => return "2I repair is not running, and there was none since the start".into(),
    };
    let mut text = String::from(state);
    for (name, field) in [
        ("Total partitions", "partitions"),
        ("Finished partitions", "finished"),
        ("Speed", "speed"),
        ("Total 2i items scanned", "scanned"),
        ("Index entries added", "added"),
        ("Index entries removed", "removed"),
    ] {
        let _ = write!(text, "\n\t{name}: {}", status[field]);
    }
    let failures = status["failures"].as_array().map_or(&[][..], Vec::as_slice);
    if !failures.is_empty() {
        text.push_str("\nWith errors:");
    }
    for failure in failures {
        let why = failure["why"].as_str().unwrap_or_default();
        let _ = write!(text, "\n\tPartition: {}, error: {why}", failure["partition"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_partitions_or_one_command() {
        let of = |words: &[&str]| wanted(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["status"]).unwrap(), Wanted::Status);
        assert_eq!(of(&["kill"]).unwrap(), Wanted::Kill);
        assert_eq!(of(&[]).unwrap(), Wanted::Partitions(vec![]));
        assert_eq!(of(&["0", "17"]).unwrap(), Wanted::Partitions(vec![0, 17]));
        assert!(of(&["0", "kill"]).is_err() && of(&["x"]).is_err());
    }

    #[test]
    fn a_status_has_riaks_form() {
        let status = json!({
            "state": "running", "partitions": 64, "finished": 3, "speed": 100, "scanned": 9, "added": 2, "removed": 1,
            "failures": [{ "partition": 7, "why": "closed" }]
        });
        let expected = "2I repair status is running:\n\tTotal partitions: 64\n\tFinished partitions: 3\n\tSpeed: 100\n\t\
                        Total 2i items scanned: 9\n\tIndex entries added: 2\n\tIndex entries removed: 1\nWith \
                        errors:\n\tPartition: 7, error: closed";
        assert_eq!(status_text(&status), expected);
        assert!(status_text(&json!({ "state": "never" })).starts_with("2I repair is not running, and"));
    }
}
