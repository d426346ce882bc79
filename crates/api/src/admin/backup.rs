//! Backups: one request begins a backup, and others ask for its progress.

use super::backup_place::OpenDir;
use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::Word;
use ombak_backup::{Backup, BackupError, BackupProgress, BackupReport};
use ombak_kv::Kv;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const SHOW: Permission = Permission::named("ombak_admin.backup");
const TAKE: Permission = Permission::named("ombak_admin.take_backup");

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"backup")], SHOW, |call| Box::pin(async move { Ok(describe(call.ctx)) })),
    AdminPath::post(&[Word(b"backup")], TAKE, |call| Box::pin(begin(call.ctx, call.body))),
];

/// The backups of a node, of which one runs at a time, and the result of the last one.
#[derive(Clone, Default)]
pub struct BackupJobs(Arc<Mutex<Option<Job>>>);

struct Job {
    /// The number of the backup, counted from 1.
    number: u64,
    dir: PathBuf,
    progress: Arc<BackupProgress>,
    /// The result; `None` while the backup runs.
    outcome: Option<Result<BackupReport, String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    dir: PathBuf,
    #[serde(default)]
    since: Option<PathBuf>,
}

/// The directories of a backup. They are held open, so that their names cannot be given to other
/// directories during the backup.
struct Dirs {
    dir: OpenDir,
    since: Option<OpenDir>,
}

/// Begins a backup on a thread of its own.
async fn begin(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let wanted: Wanted = serde_json::from_slice(body).map_err(|e| {
        AdminError::BadRequest(format!(r#"the body must be {{"dir": "a/path"}}, with "since" if wanted: {e}"#))
    })?;
    let place = ctx.backup_place.clone();
    let dirs = tokio::task::spawn_blocking(move || {
        let since = wanted.since.map(|since| place.find(&since)).transpose()?;
        Ok(Dirs { dir: place.create(&wanted.dir)?, since })
    });
    let dirs = dirs.await.map_err(|e| AdminError::Failed(format!("backup: {e}")))??;
    let (number, progress) = ctx.backups.enter(&dirs.dir.shown).inspect_err(|_| dirs.dir.remove_what_was_made())?;
    let (jobs, kv) = (ctx.backups.clone(), ctx.kv.clone());
    tokio::task::spawn_blocking(move || jobs.leave(number, dirs.run(&kv, &progress)));
    Ok(json!({ "number": number, "state": "running" }))
}

impl Dirs {
    /// Takes the backup through the open directories. Reports and errors show the directory names
    /// that people know.
    fn run(&self, kv: &Kv, progress: &BackupProgress) -> Result<BackupReport, String> {
        let dir = self.dir.shown.display();
        tracing::info!(%dir, "backup begun");
        let backup = Backup { dir: self.dir.path(), since: self.since.as_ref().map(OpenDir::path) };
        match backup.run(kv, progress) {
            Ok(report) => {
                tracing::info!(%dir, files = report.files, bytes = report.bytes, "backup taken");
                Ok(BackupReport { dir: self.dir.shown.clone(), ..report })
            }
            Err(error) => {
                let error = self.with_known_names(&error);
                self.dir.remove_what_was_made();
                tracing::warn!(%dir, error, "the backup was not completed");
                Err(error)
            }
        }
    }

    fn with_known_names(&self, error: &BackupError) -> String {
        let mut names: Vec<(String, &OpenDir)> =
            std::iter::once(&self.dir).chain(&self.since).map(|dir| (dir.path().display().to_string(), dir)).collect();
        // Longer paths are replaced first, because one path may be the beginning of the other.
        names.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        names.iter().fold(error.to_string(), |text, (path, dir)| text.replace(path, &dir.shown.display().to_string()))
    }
}

impl BackupJobs {
    fn enter(&self, dir: &std::path::Path) -> Result<(u64, Arc<BackupProgress>), AdminError> {
        let mut job = self.0.lock();
        if let Some(running) = job.as_ref().filter(|job| job.outcome.is_none()) {
            let dir = running.dir.display();
            return Err(AdminError::Refused(format!("a backup into {dir} is being taken: wait for its end")));
        }
        let number = job.as_ref().map_or(1, |last| last.number + 1);
        let progress = Arc::<BackupProgress>::default();
        *job = Some(Job { number, dir: dir.to_owned(), progress: progress.clone(), outcome: None });
        Ok((number, progress))
    }

    fn leave(&self, number: u64, outcome: Result<BackupReport, String>) {
        if let Some(job) = self.0.lock().as_mut().filter(|job| job.number == number) {
            job.outcome = Some(outcome);
        }
    }
}

/// Describes the running backup, or the last one.
fn describe(ctx: &AdminContext) -> Value {
    let job = ctx.backups.0.lock();
    let Some(job) = &*job else { return json!({ "state": "none" }) };
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let mut answer = json!({
        "number": job.number,
        "dir": job.dir,
        "partitions": count(&job.progress.partitions),
        "partitions_total": ctx.node.ring_size,
        "files": count(&job.progress.files),
        "bytes_read": count(&job.progress.bytes_read),
    });
    match &job.outcome {
        None => answer["state"] = json!("running"),
        Some(Ok(report)) => {
            answer["state"] = json!("done");
            answer["report"] = json!(report);
        }
        Some(Err(error)) => {
            answer["state"] = json!("failed");
            answer["error"] = json!(error);
        }
    }
    answer
}
