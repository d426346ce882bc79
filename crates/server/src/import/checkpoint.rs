//! The progress of an import, kept in a small file in the node's data directory.

use super::report::Report;
use ombak_node_files::saved_json::{self, Formats};
use ombak_riak_files::bitcask::{Cursor, PartitionDir};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "import.json";
const FORMATS: Formats = Formats { without_checksum: 1, current: 2 };

/// The progress of an import. Everything before this point is in the node and durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    format: u32,
    /// The source directory.
    source: PathBuf,
    /// The names of the partition directories that were read to their end.
    done: Vec<String>,
    /// The position in the partition directory that was being read.
    current: Option<Place>,
    /// The report of what was done so far.
    pub report: Report,
}

/// A position in a partition directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    dir: String,
    /// The number and length of each data file in the directory. If the files have changed, the
    /// position is not valid.
    files: Vec<(u32, u64)>,
    file_id: u32,
    offset: u64,
}

/// Why a checkpoint cannot be used or saved.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The operating system refused an operation on the file.
    #[error("cannot {op} {path}: {source}")]
    Io {
        /// The operation: `read`, `write` or `remove`.
        op: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be decoded.
    #[error(
        "{path}: {what}; start from the beginning with --restart (values that were imported before stay unchanged)"
    )]
    Unusable {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Checkpoint {
    /// The checkpoint of an import that has done nothing yet.
    pub fn new(source: &Path) -> Self {
        let source = source.to_owned();
        Self { format: FORMATS.current, source, done: Vec::new(), current: None, report: Report::default() }
    }

    /// The checkpoint that was saved for this source, or a new one.
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
            // The checkpoint belongs to the import of another source. If that import is run again
            // it starts over, which costs time but changes nothing.
            Ok(_) => Ok(Self::new(source)),
        }
    }

    /// Checks that the saved file can be read, whatever its source is. The error says what is
    /// damaged.
    pub fn examine(data_dir: &Path) -> Result<(), CheckpointError> {
        Self::load(data_dir, Path::new("")).map(|_| ())
    }

    /// Replaces the saved checkpoint. When this function returns, the new one survives a loss of
    /// power.
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

    /// Removes the saved checkpoint.
    pub fn remove(data_dir: &Path) -> Result<(), CheckpointError> {
        let path = data_dir.join(FILE_NAME);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(CheckpointError::Io { op: "remove", path, source: e }),
            _ => Ok(()),
        }
    }

    /// Whether a partition directory was read to its end.
    pub fn is_done(&self, dir: &PartitionDir) -> bool {
        self.done.contains(&name(dir))
    }

    /// The position from which to continue in a partition directory; `None` means from its
    /// beginning.
    pub fn cursor(&self, dir: &PartitionDir) -> Option<Cursor> {
        let place = self.current.as_ref().filter(|p| p.dir == name(dir) && p.files == files(dir))?;
        Some(Cursor { file_id: place.file_id, offset: place.offset })
    }

    /// Records that everything before `cursor` was imported.
    pub fn advance(&mut self, dir: &PartitionDir, cursor: Option<Cursor>) {
        self.current = cursor.map(|cursor| Place {
            dir: name(dir),
            files: files(dir),
            file_id: cursor.file_id,
            offset: cursor.offset,
        });
    }

    /// Records that a whole partition directory was imported.
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
