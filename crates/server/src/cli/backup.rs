//! The commands `ombak admin backup` and `ombak restore`.

use super::admin_client::request;
use super::args::Common;
use super::config;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use crate::config::Settings;
use crate::node::join;
use crate::restore;
use hyper::Method;
use indicatif::{HumanBytes, ProgressBar, ProgressFinish, ProgressStyle};
use ombak_backup::{ProgressCallback, verify};
use ombak_storage::fs::RealFs;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/admin/v1/backup";
/// The time between two requests for the progress of a backup.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Tells the node to take a backup and waits until it has ended. Interrupting this command does not
/// stop the backup.
pub async fn create(dir: &Path, since: Option<&Path>, common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let body = json!({ "dir": text(dir)?, "since": since.map(text).transpose()? });
    let failed = |e: super::admin_client::RequestError| e.into_failure(&target);
    let begun = request(&target, Method::POST, PATH, &body.to_string()).await.map_err(failed)?;
    let bar = progress_bar("{spinner} {msg}");
    loop {
        let now = request(&target, Method::GET, PATH, "").await.map_err(failed)?;
        if now["number"] != begun["number"] {
            return Err(Failure::new("the node has begun another backup; its log says how this backup ended"));
        }
        match now["state"].as_str() {
            Some("done") => return out.result(&now["report"], || report_text(&now["report"])),
            Some("failed") => return Err(Failure::new(now["error"].as_str().unwrap_or("the backup failed"))),
            _ => bar.set_message(progress_text(&now)),
        }
        bar.tick();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn progress_text(now: &Value) -> String {
    let count = |name: &str| now[name].as_u64().unwrap_or(0);
    let read = HumanBytes(count("bytes_read"));
    format!(
        "{} of {} partitions, {} files, {read} read",
        count("partitions"),
        count("partitions_total"),
        count("files")
    )
}

/// A progress bar. It is shown only if standard error is a terminal, and removed when it is
/// dropped.
fn progress_bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style).with_finish(ProgressFinish::AndClear)
}

/// Runs work that reads a backup and shows how much of it has been read.
fn watched<T>(work: impl FnOnce(ProgressCallback<'_>) -> T) -> T {
    let bar = progress_bar("{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left");
    work(&|bytes_done, bytes_total| {
        bar.set_length(bytes_total);
        bar.set_position(bytes_done);
    })
}

/// A path as text, which JSON needs.
fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| Failure::usage(format!("{}: the path of a backup must be UTF-8", path.display())))
}

fn report_text(report: &Value) -> String {
    let count = |name: &str| report[name].as_u64().unwrap_or(0);
    let files = [
        ("linked_files", "hard links to the node's files"),
        ("kept_files", "there already"),
        ("shared_files", "hard links to the earlier backup's files"),
    ];
    let mut ways: Vec<String> = files
        .iter()
        .filter(|(name, _)| count(name) > 0)
        .map(|(name, what)| format!("{} {what}", count(name)))
        .collect();
    ways.push(format!("{} copied ({} bytes)", count("copied_files"), count("copied_bytes")));
    let mut text = format!(
        "backup taken in {}: {} bytes in {} files of {} stores: {}",
        report["dir"].as_str().unwrap_or_default(),
        count("bytes"),
        count("files"),
        count("stores"),
        ways.join(", ")
    );
    if let Some(why) = report["not_linked"].as_str() {
        text.push_str(&format!("\nfiles of the node cannot be hard links there ({why}): they were copied"));
    }
    let left_out: Vec<&str> = report["left_out"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !left_out.is_empty() {
        text.push_str(&format!("\nnot included, because they have no files: {}", left_out.join(", ")));
    }
    text
}

/// Restores a backup into the directories of the configuration.
pub fn restore(dir: &Path, new_cluster: bool, common: &Common, out: Output) -> Result<(), Failure> {
    let effective = config::load(common)?;
    let settings = Settings::new(&effective).map_err(|problems| Failure::new(join(&problems)))?;
    let report = watched(|watch| restore::restore(dir, &settings, new_cluster, watch)).map_err(Failure::new)?;
    out.result(&json!(report), || {
        format!(
            "the node {} restored: {} bytes in {} files of {} stores; start it with 'ombak start'",
            report.node_name, report.bytes, report.files, report.stores,
        )
    })
}

/// Reads a whole backup and verifies its checksums.
pub fn check(dir: &Path, out: Output) -> Result<(), Failure> {
    let report = watched(|watch| verify(Arc::new(RealFs), dir, watch)).map_err(|e| Failure::new(e.to_string()))?;
    out.result(&json!(report), || {
        format!(
            "the backup of the node {} is whole: {} bytes in {} files of {} stores",
            report.node_name, report.bytes, report.files, report.stores
        )
    })
}
