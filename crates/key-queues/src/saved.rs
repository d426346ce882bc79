//! The record of a job on the disk.

use crate::job::{JobEnd, JobId, JobKind};
use ombak_node_files::read_saved;
use ombak_node_files::saved_json::{self, Formats};
use ombak_storage::fs::{FileSystem, replace_file};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A record has a few hundred bytes, and the names of a bucket.
const RECORD_BYTES_MAX: u64 = 1 << 20;
const FORMATS: Formats = Formats { without_checksum: 0, current: 2 };
/// What is written of a job whose keys are not damaged, so that earlier versions read it.
const WITHOUT_DAMAGE: u32 = 1;

/// How far a drop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DropStep {
    /// What was written up to this Unix second is erased.
    Erasing { until_secs: u32 },
    /// Tombstones that were written up to this Unix second are reaped.
    Reaping { until_secs: u32 },
}

/// A job, as it is saved. The names of the bucket are in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedJob {
    format: u32,
    pub(crate) id: JobId,
    pub(crate) kind: JobKind,
    pub(crate) bucket_type: String,
    pub(crate) bucket: String,
    pub(crate) began_secs: u64,
    pub(crate) keys: u64,
    pub(crate) done: u64,
    pub(crate) changed: u64,
    /// Which of the files of its keys counts. Another one takes its place when most of it is done.
    pub(crate) generation: u32,
    /// Where the first key is that is not done.
    pub(crate) offset: u64,
    /// How many bytes of the file of keys count. What is behind them was not made durable.
    pub(crate) file_bytes: u64,
    pub(crate) is_paused: bool,
    pub(crate) part_of: Option<JobId>,
    pub(crate) drop: Option<DropStep>,
    pub(crate) ended: Option<(JobEnd, u64)>,
    /// Why some of its keys cannot be read. Format 1 does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) damage: Option<String>,
}

impl SavedJob {
    pub(crate) fn new(id: JobId, kind: JobKind, names: (String, String), began_secs: u64) -> Self {
        Self {
            format: WITHOUT_DAMAGE,
            id,
            kind,
            bucket_type: names.0,
            bucket: names.1,
            began_secs,
            keys: 0,
            done: 0,
            changed: 0,
            generation: 0,
            offset: crate::key_file::FIRST_OFFSET,
            file_bytes: crate::key_file::FIRST_OFFSET,
            is_paused: false,
            part_of: None,
            drop: None,
            ended: None,
            damage: None,
        }
    }

    /// Some of its keys cannot be read. The first reason stays.
    pub(crate) fn note_damage(&mut self, why: &str) {
        self.format = FORMATS.current;
        self.damage.get_or_insert_with(|| why.to_owned());
    }

    /// How a job ends whose file has no more keys.
    pub(crate) fn end(&self) -> JobEnd {
        let lost = self.keys.saturating_sub(self.done + self.changed);
        match &self.damage {
            Some(why) if lost > 0 => JobEnd::Lost(format!("{lost} of its keys cannot be read: {why}")),
            Some(_) | None => JobEnd::Done,
        }
    }

    /// Replaces the record on the disk. Blocks.
    pub(crate) fn save(&self, fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
        replace_file(fs, &record_path(dir, self.id), &saved_json::to_text(self)?)
    }
}

/// The file of the record of a job.
pub(crate) fn record_path(dir: &Path, id: JobId) -> PathBuf {
    dir.join(format!("{id}.json"))
}

/// A file of the keys of a job.
pub(crate) fn keys_path(dir: &Path, id: JobId, generation: u32) -> PathBuf {
    dir.join(format!("{id}.{generation}.keys"))
}

/// The job and the generation of a file of keys.
fn of_keys_path(name: &str) -> Option<(JobId, u32)> {
    let (id, generation) = name.strip_suffix(".keys")?.split_once('.')?;
    Some((id.parse().ok()?, generation.parse().ok()?))
}

/// Reads the records of a directory, and removes files of keys that no job needs: those of folds
/// that did not end, of jobs that have ended, and of earlier generations. A record that is damaged
/// stays for an operator with its keys. Returns the jobs and the last number. Blocks.
pub(crate) fn read_all(fs: &dyn FileSystem, dir: &Path) -> io::Result<(Vec<SavedJob>, JobId)> {
    fs.create_dir_all(dir)?;
    if let Some(parent) = dir.parent() {
        fs.sync_dir(parent)?;
    }
    let names = fs.list(dir)?;
    let (mut jobs, mut damaged, mut last_id) = (BTreeMap::new(), BTreeSet::new(), 0);
    for name in &names {
        let Some(id) = name.strip_suffix(".json").and_then(|id| id.parse::<JobId>().ok()) else { continue };
        last_id = last_id.max(id);
        match read_saved::<SavedJob>(fs, dir.join(name), RECORD_BYTES_MAX, FORMATS, "the job does not go on") {
            Ok(job) => jobs.extend(job.map(|job| (id, job))),
            Err(error) => {
                tracing::error!(job = id, %error, "a job cannot be read: its keys stay as they are");
                damaged.insert(id);
            }
        }
    }
    for name in &names {
        let keys = of_keys_path(name);
        let is_needed = |(id, generation): (JobId, u32)| {
            let of_job = jobs.get(&id).is_some_and(|job| job.ended.is_none() && job.generation == generation);
            of_job || damaged.contains(&id)
        };
        last_id = last_id.max(keys.map_or(0, |(id, _)| id));
        let is_needless = keys.is_some_and(|keys| !is_needed(keys));
        if is_needless || name.ends_with(".json.new") {
            fs.remove_file(&dir.join(name))?;
        }
    }
    Ok((jobs.into_values().collect(), last_id))
}
