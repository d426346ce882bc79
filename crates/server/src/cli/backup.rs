//! `ombak admin backup` and `ombak restore`.

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
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATH: &str = "/admin/v1/backup";
/// Between two looks at how far it is.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Has the node take a backup and waits for its end. Interrupting this does not end the backup.
pub async fn create(dir: &Path, since: Option<&Path>, common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    // A relative path means one of this program's working directory.
    let body = json!({ "dir": absolute(dir)?, "since": since.map(absolute).transpose()? });
    let failed = |e: super::admin_client::RequestError| e.into_failure(&target);
    let begun = request(&target, Method::POST, PATH, &body.to_string()).await.map_err(failed)?;
    loop {
        let now = request(&target, Method::GET, PATH, "").await.map_err(failed)?;
        if now["number"] != begun["number"] {
            return Err(Failure::new("the node has begun another backup: its log says how this one ended"));
        }
        match now["state"].as_str() {
            Some("done") => return out.result(&now["report"], || report_text(&now["report"])),
            Some("failed") => return Err(Failure::new(now["error"].as_str().unwrap_or("the backup failed"))),
            _ => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}

fn report_text(report: &Value) -> String {
    let count = |name: &str| report[name].as_u64().unwrap_or(0);
    let mut text = format!(
        "backup taken in {}: {} files of {} stores, {} bytes",
        report["dir"].as_str().unwrap_or_default(),
        count("files"),
        count("stores"),
        count("bytes")
    );
    let mut how = vec![format!("{} share the disk space of the node's own files", count("linked_files"))];
    if count("shared_files") > 0 {
        how.push(format!("{} that of the earlier backup", count("shared_files")));
    }
    how.push(format!("{} are copies, {} bytes", count("copied_files"), count("copied_bytes")));
    text.push_str(&format!("\n{}", how.join("; ")));
    text
}

/// Puts a backup into the directories of the configuration.
pub fn restore(dir: &Path, common: &Common, out: Output) -> Result<(), Failure> {
    let effective = config::load(common)?;
    let settings = Settings::new(&effective).map_err(|problems| Failure::new(join(&problems)))?;
    let report = restore::restore(dir, &settings).map_err(Failure::new)?;
    out.result(&json!(report), || {
        format!(
            "restored {} files of {} stores, {} bytes, of the node {} into {}",
            report.files,
            report.stores,
            report.bytes,
            report.node_name,
            settings.data_dir.display()
        )
    })
}
