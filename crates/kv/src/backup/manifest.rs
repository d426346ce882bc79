//! The manifest of a backup: JSON with a checksum.

use super::destination::place_in;
use super::error::{BackupError, io_error, unusable};
use crate::node::hex;
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
#[cfg(any(test, fuzzing))]
use std::path::Component;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const FILE_NAME: &str = "manifest.json";
/// The part of a backup that holds the files of the node itself.
pub(super) const NODE_PART: &str = "node";
/// The version that is written, and the only version that is read.
const FORMAT: u32 = 1;
/// A file takes some hundred bytes, and a node has some thousand files.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The content of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// The time when the first partition was cut, in Unix seconds.
    pub(super) began_secs: u64,
    /// The node's name.
    pub(super) node_name: String,
    /// The node's identity.
    #[serde(with = "hex")]
    pub(super) node_id: u64,
    /// The node's boot number.
    pub(super) boot: u64,
    /// Number of partitions of the node's ring.
    pub(super) ring_size: u32,
    /// The files of the node itself, in [`NODE_PART`].
    pub(super) node: Vec<SavedFile>,
    /// The node's stores.
    pub(super) stores: Vec<SavedStore>,
}

/// A store in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedStore {
    /// The partition of the store.
    pub(super) partition: u32,
    /// The name of the store's backend, when the node has several backends.
    pub(super) name: Option<String>,
    /// The backend that reads the files: `bitcask`, `leveled`, `leveldb`.
    pub(super) kind: String,
    /// The identity of the store.
    #[serde(with = "hex")]
    pub(super) store_id: u64,
    /// The store's boot number.
    pub(super) boot: u64,
    /// The last append that the backup includes.
    pub(super) seq: u64,
    /// The files of the store.
    pub(super) files: Vec<SavedFile>,
}

impl SavedStore {
    /// The part of a backup that holds the store's files.
    pub(super) fn part(&self) -> String {
        format!("stores/{}", self.name.as_deref().unwrap_or(&self.kind))
    }
}

/// A file in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedFile {
    /// The number of the backup that put the file into the directory.
    pub(super) generation: u64,
    /// The path of the file under the directory of its part.
    pub(super) place: String,
    /// The length in bytes.
    pub(super) length: u64,
    /// XXH3 of the content.
    #[serde(with = "hex")]
    pub(super) checksum: u64,
    /// A number that distinguishes the file from any later file at the same place; `None` for files
    /// without such a number.
    #[serde(with = "optional_hex")]
    pub(super) salt: Option<u64>,
}

impl SavedFile {
    /// The path of the file under the directory of the backup, as text.
    pub(super) fn stored_at(&self, part: &str) -> String {
        format!("{}/{part}/{}", self.generation, self.place)
    }

    /// The path of the file. Fails if the path leads out of the backup.
    pub(super) fn path(&self, dir: &Path, part: &str) -> Result<PathBuf, BackupError> {
        place_in(dir, &self.stored_at(part))
    }
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    format: u32,
    #[serde(with = "hex")]
    checksum: u64,
    manifest: Value,
}

impl Manifest {
    /// All files, each with the part of the backup that it belongs to.
    pub(super) fn files(&self) -> impl Iterator<Item = (String, &SavedFile)> {
        let node = self.node.iter().map(|file| (NODE_PART.to_owned(), file));
        let stores = self.stores.iter().flat_map(|store| store.files.iter().map(|file| (store.part(), file)));
        node.chain(stores)
    }

    /// The paths of all files under the directory of the backup.
    pub(super) fn stored(&self) -> BTreeSet<PathBuf> {
        self.files().map(|(part, file)| file.stored_at(&part).into()).collect()
    }

    /// Writes the manifest of a backup. The backup is complete after that.
    pub(super) fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), BackupError> {
        let path = dir.join(FILE_NAME);
        let text = self.encode().map_err(io::Error::from).map_err(io_error("write", &path))?;
        replace_file(fs, &path, &text).map_err(io_error("write", &path))
    }

    /// The content of the manifest file.
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let manifest = serde_json::to_value(self)?;
        let checksum = xxh3_64(manifest.to_string().as_bytes());
        serde_json::to_vec_pretty(&Envelope { format: FORMAT, checksum, manifest })
    }

    /// Reads the manifest of a backup.
    pub(super) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self, BackupError> {
        let what = || format!("no backup, or an incomplete one: it has no {FILE_NAME}, which is written last");
        Self::find(fs, dir)?.ok_or_else(|| unusable(dir, what()))
    }

    /// Reads the manifest of a backup; `None` when the directory has none.
    pub(super) fn find(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Self>, BackupError> {
        let path = dir.join(FILE_NAME);
        let text = match read_file(fs, &path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error("read", &path)(source)),
        };
        Self::decode(&text, &path).map(Some)
    }

    /// Decodes the content of the manifest file at `path`.
    pub(super) fn decode(text: &[u8], path: &Path) -> Result<Self, BackupError> {
        let damaged = |why: String| unusable(path, format!("is damaged ({why}): this backup cannot be used"));
        let value: Value = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
        match value.get("format").and_then(Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                let what = format!("has format {format}, and this version of ombak reads format {FORMAT}");
                return Err(unusable(path, what));
            }
            None => return Err(damaged("it names no format".into())),
        }
        let Envelope { checksum, manifest, .. } = serde_json::from_value(value).map_err(|e| damaged(e.to_string()))?;
        if xxh3_64(manifest.to_string().as_bytes()) != checksum {
            return Err(damaged("its checksum does not match".into()));
        }
        serde_json::from_value(manifest).map_err(|e| damaged(e.to_string()))
    }
}

/// Checks the rules of [`crate::fuzzing`] for any bytes.
#[cfg(any(test, fuzzing))]
pub fn check_manifest(bytes: &[u8]) -> bool {
    let path = Path::new(FILE_NAME);
    let mut texts = vec![bytes.to_vec()];
    if let Ok(manifest) = serde_json::from_slice::<Value>(bytes) {
        let checksum = xxh3_64(manifest.to_string().as_bytes());
        texts.extend(serde_json::to_vec(&Envelope { format: FORMAT, checksum, manifest }));
    }
    let accepted: Vec<Manifest> = texts.iter().filter_map(|text| Manifest::decode(text, path).ok()).collect();
    for read in &accepted {
        let again = read.encode().map(|text| Manifest::decode(&text, path).ok());
        assert_eq!(again.ok().flatten().as_ref(), Some(read));
        // No path of a file leads out of the backup.
        let dir = Path::new("/backup");
        for place in read.files().filter_map(|(part, file)| file.path(dir, &part).ok()) {
            assert!(
                place.starts_with(dir) && !place.components().any(|part| part == Component::ParentDir),
                "{place:?}"
            );
        }
    }
    !accepted.is_empty()
}

mod optional_hex {
    use crate::node::hex;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Hex(#[serde(with = "hex")] u64);

    pub(super) fn serialize<S: Serializer>(n: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
        n.map(Hex).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Hex>::deserialize(d)?.map(|Hex(n)| n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::sim::FaultyFs;

    fn example() -> Manifest {
        let file = |salt| SavedFile { generation: 2, place: "3/1.data".into(), length: 7, checksum: u64::MAX, salt };
        Manifest {
            began_secs: 1_700_000_000,
            node_name: "n@h".into(),
            node_id: u64::MAX - 3,
            boot: 4,
            ring_size: 64,
            node: vec![file(None)],
            stores: vec![SavedStore {
                partition: 3,
                name: Some("hot".into()),
                kind: "bitcask".into(),
                store_id: 1 << 63,
                boot: 2,
                seq: 99,
                files: vec![file(Some(u64::MAX)), file(None)],
            }],
        }
    }

    #[test]
    fn a_manifest_comes_back_and_damage_shows() {
        let (fs, dir) = (FaultyFs::new(1), Path::new("/backup"));
        fs.create_dir_all(dir).unwrap();
        let missing = Manifest::read(&*fs, dir).unwrap_err().to_string();
        assert!(missing.contains("incomplete"), "{missing}");
        example().write(&*fs, dir).unwrap();
        assert_eq!(Manifest::read(&*fs, dir).unwrap(), example());
        let path = dir.join(FILE_NAME);
        for bit in (0..fs.length(&path).unwrap() * 8).step_by(3) {
            fs.flip_bit(&path, bit).unwrap();
            // A flipped bit may only change white space between values.
            assert!(Manifest::read(&*fs, dir).is_err() || Manifest::read(&*fs, dir).unwrap() == example(), "bit {bit}");
            fs.flip_bit(&path, bit).unwrap();
        }
        let newer = b"{\"format\": 2}";
        replace_file(&*fs, &path, newer).unwrap();
        let text = Manifest::read(&*fs, dir).unwrap_err().to_string();
        assert!(text.contains("format 2"), "{text}");
    }
}
