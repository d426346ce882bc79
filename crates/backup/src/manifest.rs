//! The manifest of a backup: JSON with a checksum.

use crate::backup_files::path_inside;
use crate::error::{BackupError, io_error, unusable};
use ombak_node_files::hex;
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use ombak_types::NodeId;
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
pub(crate) const NODE_PART: &str = "node";
/// The version that is written, and the only version that is read.
const FORMAT: u32 = 1;
/// A file takes some hundred bytes, and a node has some thousand files.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The content of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The time when the first partition was cut, in Unix seconds.
    pub(crate) began_secs: u64,
    /// The node's name.
    pub(crate) node_name: String,
    /// The node's identity.
    pub(crate) node_id: NodeId,
    /// The node's boot number.
    pub(crate) boot: u64,
    /// Number of partitions of the node's ring.
    pub(crate) ring_size: u32,
    /// The files of the node itself, in [`NODE_PART`].
    pub(crate) node: Vec<SavedFile>,
    /// The node's stores.
    pub(crate) stores: Vec<SavedStore>,
}

/// A store in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedStore {
    /// The partition of the store.
    pub(crate) partition: u32,
    /// The name of the store's backend, when the node has several backends.
    pub(crate) name: Option<String>,
    /// The backend that reads the files: `bitcask`, `leveled`, `leveldb`.
    pub(crate) kind: String,
    /// The identity of the store.
    #[serde(with = "hex")]
    pub(crate) store_id: u64,
    /// The store's boot number.
    pub(crate) boot: u64,
    /// The last append that the backup includes.
    pub(crate) seq: u64,
    /// The files of the store.
    pub(crate) files: Vec<SavedFile>,
}

impl SavedStore {
    /// The part of a backup that holds the store's files.
    pub(crate) fn part(&self) -> String {
        format!("stores/{}", self.name.as_deref().unwrap_or(&self.kind))
    }
}

/// A file in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedFile {
    /// The number of the backup that put the file into the directory.
    pub(crate) generation: u64,
    /// The path of the file under the directory of its part.
    #[serde(rename = "place")]
    pub(crate) relative_path: String,
    /// The length in bytes.
    pub(crate) length: u64,
    /// XXH3 of the content.
    #[serde(with = "hex")]
    pub(crate) checksum: u64,
    /// A number that distinguishes the file from any later file at the same place; `None` for files
    /// without such a number.
    #[serde(with = "optional_hex")]
    pub(crate) salt: Option<u64>,
}

impl SavedFile {
    /// The path of the file under the directory of the backup, as text.
    pub(crate) fn stored_at(&self, part: &str) -> String {
        format!("{}/{part}/{}", self.generation, self.relative_path)
    }

    /// The path of the file. Fails if the path leads out of the backup.
    pub(crate) fn path(&self, dir: &Path, part: &str) -> Result<PathBuf, BackupError> {
        path_inside(dir, &self.stored_at(part))
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
    pub(crate) fn files(&self) -> impl Iterator<Item = (String, &SavedFile)> {
        let node = self.node.iter().map(|file| (NODE_PART.to_owned(), file));
        let stores = self.stores.iter().flat_map(|store| store.files.iter().map(|file| (store.part(), file)));
        node.chain(stores)
    }

    /// The paths of all files under the directory of the backup.
    pub(crate) fn stored(&self) -> BTreeSet<PathBuf> {
        self.files().map(|(part, file)| file.stored_at(&part).into()).collect()
    }

    /// Writes the manifest of a backup. The backup is complete after that.
    pub(crate) fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), BackupError> {
        let path = dir.join(FILE_NAME);
        let text = self.encode().map_err(io::Error::from).map_err(io_error("write", &path))?;
        replace_file(fs, &path, &text).map_err(io_error("write", &path))
    }

    /// The content of the manifest file.
    pub(crate) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let manifest = serde_json::to_value(self)?;
        let checksum = xxh3_64(manifest.to_string().as_bytes());
        serde_json::to_vec_pretty(&Envelope { format: FORMAT, checksum, manifest })
    }

    /// Reads the manifest of a backup.
    pub(crate) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self, BackupError> {
        let what = || format!("no backup, or an incomplete one: it has no {FILE_NAME}, which is written last");
        Self::find(fs, dir)?.ok_or_else(|| unusable(dir, what()))
    }

    /// Reads the manifest of a backup; `None` when the directory has none.
    pub(crate) fn find(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Self>, BackupError> {
        let path = dir.join(FILE_NAME);
        let text = match read_file(fs, &path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error("read", &path)(source)),
        };
        Self::decode(&text, &path).map(Some)
    }

    /// Decodes the content of the manifest file at `path`.
    pub(crate) fn decode(text: &[u8], path: &Path) -> Result<Self, BackupError> {
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

/// Checks the manifest of a backup, for the fuzz target and for the tests of this crate: either the
/// whole file, or the part that its checksum covers. No bytes make the reader panic, and a manifest
/// that was accepted is read as the same manifest after it is written. Returns whether it accepted
/// the bytes.
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
    use ombak_node_files::hex;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Hex(#[serde(with = "hex")] u64);

    pub(crate) fn serialize<S: Serializer>(n: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
        n.map(Hex).serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Hex>::deserialize(d)?.map(|Hex(n)| n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::sim::FaultyFs;
    use proptest::prelude::*;

    const MANIFEST: &str = r#"{"began_secs":1,"node_name":"n@h","node_id":"0000000000000001","boot":4,"ring_size":64,
        "node":[{"generation":1,"place":"node.json","length":7,"checksum":"00000000000000ff","salt":null}],
        "stores":[{"partition":3,"name":"hot","kind":"bitcask","store_id":"0000000000000002","boot":2,"seq":99,
        "files":[{"generation":1,"place":"3/1.data","length":7,"checksum":"00000000000000ff","salt":"0000000000000003"}]}]}"#;

    proptest! {
        #[test]
        fn a_changed_manifest_is_read_or_refused(
            at in any::<prop::sample::Index>(), length in 0..12usize, put in "[0-9a-z%\"{}:,.\\[\\]/-]{0,8}",
        ) {
            let start = at.index(MANIFEST.len());
            let end = (start + length).min(MANIFEST.len());
            prop_assert!(check_manifest(MANIFEST.as_bytes()));
            check_manifest([&MANIFEST[..start], &put, &MANIFEST[end..]].concat().as_bytes());
        }
    }

    fn example() -> Manifest {
        let file =
            |salt| SavedFile { generation: 2, relative_path: "3/1.data".into(), length: 7, checksum: u64::MAX, salt };
        Manifest {
            began_secs: 1_700_000_000,
            node_name: "n@h".into(),
            node_id: NodeId::new(u64::MAX - 3),
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
