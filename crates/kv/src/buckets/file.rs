//! The file of the registry: JSON, always replaced as a whole.
//!
//! `buckets.json` has a version and a checksum. It is always one complete generation. The previous
//! generation is kept as `buckets.json.previous`, so that an operator can go back to it when the
//! file is damaged. Names are arbitrary bytes: the file writes a byte that is not printable ASCII,
//! and `%` itself, as `%` and two hexadecimal digits.

use super::functions::FUNCTIONS;
use super::open_record::{OpenRecord, RecordName};
use super::state::{BucketRecord, Records, TypeRecord};
use bytes::Bytes;
use ombak_node_files::NodeFileError;
use ombak_node_files::saved_json::{self, Formats};
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use ombak_types::{Bucket, PropMap};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file in the directory of a node.
pub const FILE_NAME: &str = "buckets.json";
/// An upper bound: the maximum of types and buckets, with long names and many properties, takes
/// less.
const FILE_BYTES_MAX: u64 = 4 << 30;
const FORMATS: Formats = Formats { without_checksum: 1, current: 4 };
/// The format that is written while there are no records of namespaces. Version 1 of the program
/// reads it.
const FORMAT_WITHOUT_RECORDS: u32 = 2;
/// The format that is written while there are no records but functions.
const FORMAT_OF_FUNCTIONS: u32 = 3;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    types: Vec<SavedType>,
    buckets: Vec<SavedBucket>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    functions: Vec<SavedFunction>,
    /// The records of all namespaces but functions. Only format 4 has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    records: Vec<SavedRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedType {
    name: String,
    active: bool,
    props: PropMap,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedBucket {
    r#type: String,
    name: String,
    props: PropMap,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedFunction {
    name: String,
    source: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedRecord {
    namespace: String,
    key: String,
    value: String,
}

/// The files that hold the records.
pub(super) struct RegistryFile {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
}

impl fmt::Debug for RegistryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegistryFile").field(&self.dir).finish()
    }
}

impl RegistryFile {
    /// Reads the records that were saved last. Without a file the records are empty.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<(Self, Records), NodeFileError> {
        let file = Self { fs, dir: dir.to_owned() };
        let path = file.path("");
        let text = match read_file(&*file.fs, &path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return file.open_missing(&path),
            Err(source) => return Err(NodeFileError::Io { op: "read", path, source }),
        };
        let records = parse(text).map_err(|why| NodeFileError::Unusable {
            what: format!(
                "{why}; the bucket types and properties as they were before the last change are in {}: compare, and \
                 copy it over this file",
                file.path(".previous").display()
            ),
            path,
        })?;
        Ok((file, records))
    }

    /// Handles a missing file. If a previous generation exists, something removed the file, and the
    /// node must not start: an empty registry would hide every typed bucket.
    fn open_missing(self, path: &Path) -> Result<(Self, Records), NodeFileError> {
        let previous = self.path(".previous");
        if self.exists(&previous).map_err(|source| NodeFileError::Io { op: "read", path: previous.clone(), source })? {
            return Err(NodeFileError::Unusable {
                path: path.to_owned(),
                what: format!(
                    "is missing although this node had bucket types or properties; copy {} over it, or remove that \
                     too to start without",
                    previous.display()
                ),
            });
        }
        Ok((self, Records::default()))
    }

    /// Replaces the saved records. After a success the new records survive a power loss; after an
    /// error either the old or the new records do.
    pub fn save(&mut self, records: &Records) -> io::Result<()> {
        let text = text_of(records)?;
        let current = self.path("");
        if self.exists(&current)? {
            self.keep_previous(&current)?;
        }
        replace_file(&*self.fs, &current, &text)
    }

    /// Puts both generations aside: the records are kept elsewhere from now on. Does nothing if
    /// there are none.
    pub fn put_aside(&mut self) -> io::Result<()> {
        for suffix in ["", ".previous"] {
            let path = self.path(suffix);
            if self.exists(&path)? {
                self.fs.rename(&path, &self.path(&format!("{suffix}.before-cluster")))?;
            }
        }
        self.fs.sync_dir(&self.dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.fs.file_identity(path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Hard-links the current generation as the previous one, so that `buckets.json` itself exists
    /// at every moment.
    fn keep_previous(&self, current: &Path) -> io::Result<()> {
        let link = self.path(".link");
        let previous = self.path(".previous");
        match self.fs.remove_file(&link) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        match self.fs.hard_link(current, &link) {
            Ok(()) => self.fs.rename(&link, &previous),
            // Some file systems have no hard links.
            Err(_) => replace_file(&*self.fs, &previous, &read_file(&*self.fs, current, FILE_BYTES_MAX)?),
        }
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.dir.join(format!("{FILE_NAME}{suffix}"))
    }
}

/// The text of the file that holds these records.
pub(super) fn text_of(records: &Records) -> io::Result<Vec<u8>> {
    Ok(saved_json::to_text(&to_saved(records))?)
}

/// Examines both generations in the directory of a stopped node. The errors say what is damaged.
pub(crate) fn examine_file(fs: &Arc<dyn FileSystem>, dir: &Path) -> Vec<NodeFileError> {
    let path = dir.join(format!("{FILE_NAME}.previous"));
    let previous = match read_file(&**fs, &path, FILE_BYTES_MAX).map(parse) {
        Ok(Ok(_)) => None,
        Ok(Err(why)) => {
            let what = format!("{why}: it helps no more when {FILE_NAME} is damaged; the next change replaces it");
            Some(NodeFileError::Unusable { path, what })
        }
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(source) => Some(NodeFileError::Io { op: "read", path, source }),
    };
    RegistryFile::open(fs.clone(), dir).err().into_iter().chain(previous).collect()
}

fn parse(text: Vec<u8>) -> Result<Records, String> {
    let saved: Saved = saved_json::from_text(text, FORMATS)?;
    let name = |text: &str| decode_name(text).ok_or_else(|| format!("is damaged (the name {text:?} does not decode)"));
    let mut records = Records::default();
    for SavedType { name: text, active, props } in saved.types {
        records.types.insert(name(&text)?, TypeRecord { active, overrides: Arc::new(props), version: 0 });
    }
    for saved in saved.buckets {
        let bucket = Bucket { bucket_type: name(&saved.r#type)?, name: name(&saved.name)? };
        if !bucket.is_default_type() && !records.types.get(&bucket.bucket_type).is_some_and(|t| t.active) {
            return Err(format!(
                "is damaged (bucket {:?} is of the type {:?}, which is not active)",
                saved.name, saved.r#type
            ));
        }
        records.buckets.insert(bucket, BucketRecord { overrides: Arc::new(saved.props), version: 0 });
    }
    for SavedFunction { name, source } in saved.functions {
        let record = OpenRecord { value: source.into(), version: 0 };
        records.open.set(RecordName::new(FUNCTIONS, name.as_bytes()), Some(record));
    }
    for SavedRecord { namespace, key, value } in saved.records {
        let record = OpenRecord { value: value.into(), version: 0 };
        records.open.set(RecordName { namespace: namespace.into(), key: name(&key)? }, Some(record));
    }
    Ok(records)
}

fn to_saved(records: &Records) -> Saved {
    let types = records.types.iter().map(|(name, record)| SavedType {
        name: encode_name(name),
        active: record.active,
        props: (*record.overrides).clone(),
    });
    let buckets = records.buckets.iter().map(|(bucket, record)| SavedBucket {
        r#type: encode_name(&bucket.bucket_type),
        name: encode_name(&bucket.name),
        props: (*record.overrides).clone(),
    });
    let (mut functions, mut others) = (Vec::new(), Vec::new());
    for (RecordName { namespace, key }, record) in records.open.iter() {
        let value = record.value.to_string();
        match str::from_utf8(&key) {
            Ok(name) if &*namespace == FUNCTIONS => functions.push(SavedFunction { name: name.into(), source: value }),
            _ => others.push(SavedRecord { namespace: namespace.to_string(), key: encode_name(&key), value }),
        }
    }
    let format = match (functions.is_empty(), others.is_empty()) {
        (true, true) => FORMAT_WITHOUT_RECORDS,
        (false, true) => FORMAT_OF_FUNCTIONS,
        (_, false) => FORMATS.current,
    };
    Saved { format, types: types.collect(), buckets: buckets.collect(), functions, records: others }
}

/// Checks the rules of [`crate::fuzzing`] for any bytes.
#[cfg(any(test, fuzzing))]
pub fn check_buckets_file(bytes: &[u8]) -> bool {
    // Generated bytes have no valid checksum, so they are also tried with one.
    let sealed = saved_json::with_checksum(bytes);
    let Ok(records) = parse(bytes.to_vec()).or_else(|_| parse(sealed)) else { return false };
    let again = saved_json::to_text(&to_saved(&records)).map(parse);
    assert_eq!(again.ok(), Some(Ok(records)));
    true
}

fn encode_name(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &b in bytes {
        if (b == b' ' || b.is_ascii_graphic()) && b != b'%' {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02x}"));
        }
    }
    out
}

fn decode_name(text: &str) -> Option<Bytes> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
            out.push((digit(bytes.next())? << 4 | digit(bytes.next())?) as u8);
        } else {
            out.push(b);
        }
    }
    Some(Bytes::from(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_file_has_the_bytes_of_version_1() {
        let overrides = || Arc::new(json!({"n_val": 5, "allow_mult": true}).as_object().cloned().unwrap());
        let bucket_type = |active| TypeRecord { active, overrides: overrides(), version: 0 };
        let mut records = Records::default();
        records.types.insert("a type".into(), bucket_type(true));
        records.types.insert("100% \u{e9}\u{1}".into(), bucket_type(false));
        for bucket_type in ["a type", "default"] {
            let bucket = Bucket { bucket_type: bucket_type.into(), name: "a 100% \u{e9} bucket".into() };
            records.buckets.insert(bucket, BucketRecord { overrides: overrides(), version: 0 });
        }
        let written = text_of(&records).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 1, FILE_NAME, &written);
        assert_eq!(parse(frozen), Ok(records));
    }

    #[test]
    fn the_file_with_functions_has_the_bytes_of_version_2() {
        let mut records = Records::default();
        records.types.insert("t".into(), TypeRecord { active: true, overrides: Arc::default(), version: 0 });
        let source: Arc<str> = "function(v) {\n\treturn [\"\u{e9}\\\"];\n}\n".into();
        for name in ["f", "My.f"] {
            let record = OpenRecord { value: source.clone(), version: 0 };
            records.open.set(RecordName::new(FUNCTIONS, name.as_bytes()), Some(record));
        }
        let written = text_of(&records).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 2, FILE_NAME, &written);
        assert_eq!(parse(frozen), Ok(records));
    }

    #[test]
    fn records_of_any_namespace_and_key_are_read_back() {
        let mut records = Records::default();
        let format = |records: &Records| to_saved(records).format;
        let mut set = |namespace: &str, key: &[u8]| {
            let record = OpenRecord { value: "{\"a\": \"\u{e9}\"}".into(), version: 0 };
            records.open.set(RecordName::new(namespace, key), Some(record));
            assert_eq!(parse(text_of(&records).unwrap()).as_ref(), Ok(&records));
            format(&records)
        };
        assert_eq!(set(FUNCTIONS, b"f"), 3, "versions without open records read it");
        assert_eq!(set("users", b"100% \xff\x01"), 4);
        assert_eq!(set(FUNCTIONS, b"\xff"), 4);
    }
}
