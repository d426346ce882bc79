//! The import itself: reads the directories of the source and writes to an open engine.

use super::checkpoint::{Checkpoint, CheckpointError};
use super::report::Report;
use bytes::Bytes;
use ombak_kv::{ImportOutcome, Importer, Kv};
use ombak_riak_files::bitcask::{Event, Fault, PartitionDir, SourceError, Version, key, partition_dirs};
use ombak_types::{Bucket, Error, Object, riak_object};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the source between two checkpoints. After an interruption, about a second of work is
/// repeated.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// The number of values between two calls of the observer.
const OBSERVE_EVERY: u64 = 512;

/// The progress of an import, for the observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the data files that have been processed.
    pub bytes_done: u64,
    /// Bytes of all data files.
    pub bytes: u64,
    /// The number of current values that were read, in this run and in earlier ones.
    pub copies: u64,
}

/// Why an import stopped. What was imported before is kept.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The progress cannot be read or saved.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The node cannot store more values.
    #[error("this node cannot store more: {0}; the same command continues from here")]
    Node(Error),
}

/// One run of an import.
pub struct Import<'a> {
    kv: &'a Kv,
    data_dir: &'a Path,
    importer: Importer<'a>,
    dirs: Vec<PartitionDir>,
    checkpoint: Checkpoint,
    progress: Progress,
    interrupted: &'a AtomicBool,
    observe: &'a mut dyn FnMut(&Progress),
}

/// Why a value was not imported.
enum Refused {
    /// The node does not have its bucket type.
    NoType(Bucket),
    /// The value is not an object, or it has no valid name.
    Bad(String),
}

impl<'a> Import<'a> {
    /// Examines the whole source and loads the progress of earlier runs. `restart` ignores that
    /// progress.
    pub fn begin(
        kv: &'a Kv,
        data_dir: &'a Path,
        source: &Path,
        restart: bool,
        interrupted: &'a AtomicBool,
        observe: &'a mut dyn FnMut(&Progress),
    ) -> Result<Self, ImportError> {
        let source = &canonical(source)?;
        let dirs = partition_dirs(source)?;
        let dirs = dirs.iter().map(|dir| PartitionDir::open(dir)).collect::<Result<Vec<_>, _>>()?;
        let mut checkpoint = if restart { Checkpoint::new(source) } else { Checkpoint::load(data_dir, source)? };
        checkpoint.report.partitions = dirs.len() as u64;
        let progress = Progress {
            bytes: dirs.iter().map(bytes_of).sum(),
            copies: checkpoint.report.copies,
            ..Progress::default()
        };
        Ok(Self { kv, data_dir, importer: kv.importer(), dirs, checkpoint, progress, interrupted, observe })
    }

    /// Reads everything that is left, or until `interrupted` becomes true.
    pub fn run(mut self) -> Result<Report, ImportError> {
        for dir in std::mem::take(&mut self.dirs) {
            if !self.checkpoint.is_done(&dir) && !self.read_dir(&dir)? {
                return Ok(self.checkpoint.report);
            }
            self.progress.bytes_done += bytes_of(&dir);
        }
        self.checkpoint.report.complete = true;
        Checkpoint::remove(self.data_dir)?;
        Ok(self.checkpoint.report)
    }

    /// Reads what is left of one directory. Returns false if it was interrupted.
    fn read_dir(&mut self, dir: &PartitionDir) -> Result<bool, ImportError> {
        let interrupted = self.interrupted;
        let Some(latest) = dir.load_latest(&|| interrupted.load(Ordering::Relaxed)) else { return Ok(false) };
        let mut records = dir.records(&latest, self.checkpoint.cursor(dir));
        let before = self.progress.bytes_done;
        let mut saved_at = records.bytes_done();
        while let Some(event) = records.next_event() {
            match event {
                Event::Fault(fault) => self.report_fault(&fault),
                Event::Version(version) => self.take(dir, &version)?,
            }
            let report = &self.checkpoint.report;
            if (report.copies + report.faults).is_multiple_of(OBSERVE_EVERY) {
                self.progress.bytes_done = before + records.bytes_done();
                self.progress.copies = report.copies;
                (self.observe)(&self.progress);
            }
            let interrupted = self.interrupted.load(Ordering::Relaxed);
            if interrupted || records.bytes_done() - saved_at >= CHECKPOINT_BYTES {
                saved_at = records.bytes_done();
                self.checkpoint.advance(dir, records.cursor());
                self.save()?;
            }
            if interrupted {
                return Ok(false);
            }
        }
        self.progress.bytes_done = before;
        self.checkpoint.finish(dir);
        self.save()?;
        Ok(true)
    }

    /// Saves the progress, after everything before it is durable.
    fn save(&mut self) -> Result<(), ImportError> {
        self.importer.sync().map_err(ImportError::Node)?;
        Ok(self.checkpoint.save(self.data_dir)?)
    }

    fn take(&mut self, dir: &PartitionDir, version: &Version) -> Result<(), ImportError> {
        self.checkpoint.report.copies += 1;
        let (bucket, key, object) = match self.decode(version) {
            Ok(decoded) => decoded,
            Err(refused) => {
                self.refuse(dir, version, refused);
                return Ok(());
            }
        };
        let tombstone = object.is_deleted();
        match self.importer.import(&bucket, &key, object) {
            Ok(outcome) => {
                let report = &mut self.checkpoint.report;
                match outcome {
                    ImportOutcome::New => report.keys_new += 1,
                    ImportOutcome::Merged => report.copies_merged += 1,
                    ImportOutcome::Known => report.copies_known += 1,
                }
                report.tombstones += u64::from(tombstone);
            }
            Err(Error::NoType(bucket)) => self.refuse(dir, version, Refused::NoType(bucket)),
            Err(e @ (Error::ZeroLength(_) | Error::KeyTooLarge | Error::Unsupported(_))) => {
                self.refuse(dir, version, Refused::Bad(format!("{bucket:?}/{}: {e}", key.escape_ascii())));
            }
            Err(e) => return Err(ImportError::Node(e)),
        }
        Ok(())
    }

    fn decode(&self, version: &Version) -> Result<(Bucket, Bytes, Object), Refused> {
        let (bucket, key) = key::decode(&version.key).map_err(|e| Refused::Bad(e.to_string()))?;
        // The node does not have the bucket type, so the value need not be decoded.
        if self.kv.buckets().props(&bucket).is_err() {
            return Err(Refused::NoType(bucket));
        }
        let object = riak_object::decode(&version.value)
            .map_err(|e| Refused::Bad(format!("{bucket:?}/{}: {e}", key.escape_ascii())))?;
        if object.siblings.is_empty() {
            return Err(Refused::Bad(format!("{bucket:?}/{}: the object has no value", key.escape_ascii())));
        }
        Ok((bucket, key, object))
    }

    fn refuse(&mut self, dir: &PartitionDir, version: &Version, refused: Refused) {
        match refused {
            Refused::NoType(bucket) => self.checkpoint.report.skip(&bucket.bucket_type),
            Refused::Bad(reason) => {
                let file = dir.files().iter().find(|f| f.id == version.file_id).map(|f| f.path.clone());
                let file = file.unwrap_or_else(|| dir.path().to_owned());
                self.checkpoint.report.fault(file.display().to_string(), version.offset, reason);
            }
        }
    }

    fn report_fault(&mut self, fault: &Fault) {
        let reason = format!("{} ({} bytes)", fault.what, fault.bytes);
        self.checkpoint.report.fault(fault.file.display().to_string(), fault.offset, reason);
    }
}

fn canonical(source: &Path) -> Result<PathBuf, SourceError> {
    source.canonicalize().map_err(|e| SourceError::Io { path: source.to_owned(), source: e })
}

fn bytes_of(dir: &PartitionDir) -> u64 {
    dir.files().iter().map(|f| f.bytes).sum()
}
