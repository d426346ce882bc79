//! The command `ombak admin top`: what a node is busy with, renewed again and again.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use super::top_text::{Interval, text};
use clap::Args;
use hyper::Method;
use serde_json::Value;
use std::time::{Duration, Instant};

const PATH: &str = "/admin/v1/top";
/// How long the first picture waits for its second look at the node, at most.
const FIRST_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// The shortest and the longest time between two pictures, in seconds.
const INTERVAL_SECS: (f64, f64) = (0.1, 3_600.0);

/// Options of the command. Users see the doc comments of the fields in `--help`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Show one picture and end.
    #[arg(long)]
    once: bool,
    /// Seconds between two pictures.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    interval: f64,
    /// How many keys, buckets and objects to show, at most 50.
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: usize,
}

/// The answer of the node, and when it came.
struct Look {
    at: Instant,
    top: Value,
}

/// Runs the command: until it is interrupted, or the node does not answer any more.
pub async fn run(args: &TopArgs, common: &Common, out: Output) -> Result<(), Failure> {
    let interval = interval(args.interval)?;
    let target = Target::find(common)?;
    let mut before = look(&target).await?;
    let mut pause = interval.min(FIRST_INTERVAL_MAX);
    loop {
        tokio::time::sleep(pause).await;
        let now = look(&target).await?;
        let rates = Interval::between(&before.top, &now.top, now.at - before.at);
        if out.json {
            let mut picture = now.top.clone();
            picture["per_second"] = rates.json();
            out.line(&picture.to_string())?;
        } else {
            let picture = text(&now.top, &rates, args.count);
            if args.once { out.line(&picture)? } else { out.picture(&picture)? }
        }
        if args.once {
            return Ok(());
        }
        (before, pause) = (now, interval);
    }
}

async fn look(target: &Target) -> Result<Look, Failure> {
    let top = request(target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(target))?;
    Ok(Look { at: Instant::now(), top })
}

fn interval(secs: f64) -> Result<Duration, Failure> {
    let (least, most) = INTERVAL_SECS;
    if (least..=most).contains(&secs) {
        Ok(Duration::from_secs_f64(secs))
    } else {
        Err(Failure::usage(format!("--interval {secs}: must be from {least} to {most} seconds")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_neither_nothing_nor_endless() {
        assert_eq!(interval(0.5), Ok(Duration::from_millis(500)));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(interval(wrong).map_err(|failure| failure.code), Err(2), "{wrong}");
        }
    }
}
