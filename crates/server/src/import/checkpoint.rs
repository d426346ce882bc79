//! How far an import has come: a small file in the node's data directory.

use super::report::Report;
use ombak_kv::saved_json::{self, Formats};
use ombak_storage::riak_bitcask::{Cursor, PartitionDir};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "import.json";
const FORMATS: Formats = Formats { without_checksum: 1, current: 2 };

/// How far an import has come. Everything before it is in the node, and durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    format: u32,
    /// The source directory.
    source: PathBuf,
    /// Names of the partition directories that are done.
    done: Vec<String>,
    /// The one that was being read.
    current: Option<Place>,
    /// What was done so far.
    pub report: Report,
}

/// A place in a partition directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    dir: String,
    /// Number and length of each of its data files. With other files the place would mean nothing.
    files: Vec<(u32, u64)>,
    file_id: u32,
    offset: u64,
}

/// Why the file does not help.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The operating system refused.
    #[error("cannot {op} {path}: {source}")]
    Io {
        /// `read`, `write`, `remove`.
        op: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It does not decode.
    #[error("{path}: {what}; start from the beginning with --restart (values that are in already stay as they are)")]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Checkpoint {
    /// Nothing done yet.
    pub fn new(source: &Path) -> Self {
        let source = source.to_owned();
        Self { format: FORMATS.current, source, done: Vec::new(), current: None, report: Report::default() }
    }

    /// What was saved for this source, or a new one.
    pub fn load(data_dir: &Path, source: &Path) -> Result<Self, CheckpointError> {
        let path = data_dir.join(FILE_NAME);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Self::new(source)),
            Err(source) => return Err(CheckpointError::Io { op: "read", path, source }),
        };
        match saved_json::from_text::<Self>(text, FORMATS) {
            Err(what) => Err(CheckpointError::Unusable { path, what }),
            Ok(saved) if saved.source == source => Ok(Self { format: FORMATS.current, ..saved }),
            // Of another import; that one would start over, which changes nothing but its time.
            Ok(_) => Ok(Self::new(source)),
        }
    }

    /// Examines what is saved, for whatever source. The error says what is damaged.
    pub fn examine(data_dir: &Path) -> Result<(), CheckpointError> {
        Self::load(data_dir, Path::new("")).map(|_| ())
    }

    /// Replaces what is saved. It survives a loss of power when this returns.
    pub fn save(&self, data_dir: &Path) -> Result<(), CheckpointError> {
        let path = data_dir.join(FILE_NAME);
        let new = path.with_extension("json.new");
        let write = || -> io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(&saved_json::to_text(self)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(data_dir)?.sync_all()
        };
        write().map_err(|source| CheckpointError::Io { op: "write", path: path.clone(), source })
    }

    /// Forgets what is saved.
    pub fn remove(data_dir: &Path) -> Result<(), CheckpointError> {
        let path = data_dir.join(FILE_NAME);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(CheckpointError::Io { op: "remove", path, source: e }),
            _ => Ok(()),
        }
    }

    /// Whether a partition directory was read to the end.
    pub fn is_done(&self, dir: &PartitionDir) -> bool {
        self.done.contains(&name(dir))
    }

    /// Where to go on in a partition directory; `None` at its beginning.
    pub fn cursor(&self, dir: &PartitionDir) -> Option<Cursor> {
        let place = self.current.as_ref().filter(|p| p.dir == name(dir) && p.files == files(dir))?;
        Some(Cursor { file_id: place.file_id, offset: place.offset })
    }

    /// Everything up to `cursor` is in.
    pub fn advance(&mut self, dir: &PartitionDir, cursor: Option<Cursor>) {
        self.current = cursor.map(|cursor| Place {
            dir: name(dir),
            files: files(dir),
            file_id: cursor.file_id,
            offset: cursor.offset,
        });
    }

    /// A whole partition directory is in.
    pub fn finish(&mut self, dir: &PartitionDir) {
        self.current = None;
        self.done.push(name(dir));
        self.report.partitions_done += 1;
    }
}

fn name(dir: &PartitionDir) -> String {
    dir.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn files(dir: &PartitionDir) -> Vec<(u32, u64)> {
    dir.files().iter().map(|f| (f.id, f.bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_read_and_a_flipped_digit_is_noticed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (dir, source) = (dir.path(), Path::new("/riak/bitcask"));
        let path = dir.join(FILE_NAME);
        let done = Checkpoint { done: vec!["17".into()], ..Checkpoint::new(source) };
        done.save(dir).expect("saved");
        let text = fs::read_to_string(&path).expect("read");
        fs::write(&path, text.replace("\"17\"", "\"16\"")).expect("written");
        let said = Checkpoint::examine(dir).expect_err("damaged").to_string();
        assert!(said.contains("does not match its checksum") && said.contains("--restart"), "{said}");
        let mut fields: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        fields["format"] = 1.into();
        fields.as_object_mut().expect("an object").remove("checksum");
        fs::write(&path, fields.to_string()).expect("written");
        assert_eq!(Checkpoint::load(dir, source).expect("read"), done);
    }
}
