//! Opens the files of an index.
//!
//! ```text
//!  index.ombak   1 line: the version of the format and the hash of the schema; written first
//!  meta.json     the library's list of segments, with the place; written last
//! ```
//!
//! A directory with neither is new. One with the first only is new too: a crash came between. One
//! with segments and without either is damaged.

use crate::encoded_terms::TermReader;
use crate::error::{IndexError, guarded};
use crate::layout::{ENCODED, Layout};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tantivy::directory::MmapDirectory;
use tantivy::tokenizer::TokenizerManager;
use tantivy::{IndexSettings, SegmentReader};

/// The version of the layout of documents, and of how texts become terms.
const FORMAT: u32 = 3;

const FORMAT_FILE: &str = "index.ombak";

const LIBRARY_FILE: &str = "meta.json";

/// Indexes up to this size are read at their opening, and their checksums compared. Of larger ones,
/// only the ends of files are.
const CHECKED_BYTES_MAX: u64 = 1 << 30;

/// Opens or creates the index of a directory.
pub(crate) fn open(dir: &Path, layout: &Layout, schema_text_hash: u64) -> Result<tantivy::Index, IndexError> {
    fs::create_dir_all(dir)?;
    let is_there = |name: &str| dir.join(name).try_exists();
    let has_library_file = is_there(LIBRARY_FILE)?;
    if is_there(FORMAT_FILE)? {
        check_format(&fs::read(dir.join(FORMAT_FILE))?, schema_text_hash)?;
    } else if has_library_file || has_segments(dir)? {
        return Err(IndexError::Damaged(format!("the file {FORMAT_FILE} is missing")));
    } else {
        write_format(dir, schema_text_hash)?;
    }
    let mut index = guarded(|| {
        let directory = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
        if has_library_file {
            return Ok(tantivy::Index::open(directory)?);
        }
        if has_segments(dir)? {
            return Err(IndexError::Damaged(format!("the file {LIBRARY_FILE} is missing")));
        }
        Ok(tantivy::Index::create(directory, layout.schema.clone(), IndexSettings::default())?)
    })?;
    if index.schema() != layout.schema {
        return Err(IndexError::OtherSchema(String::from("its fields are others")));
    }
    let tokenizers = TokenizerManager::default();
    tokenizers.register(ENCODED, TermReader);
    index.set_tokenizers(tokenizers);
    sync_directory(dir)?;
    guarded(|| check(dir, &index))?;
    Ok(index)
}

/// Makes the names of files in a directory durable.
pub(crate) fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The bytes of all files of a directory. Files that vanish meanwhile have none.
pub(crate) fn bytes_on_disk(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        bytes += entry?.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}

/// Opens all segments, and reads them if that does not take long.
fn check(dir: &Path, index: &tantivy::Index) -> Result<(), IndexError> {
    for segment in index.searchable_segments()? {
        SegmentReader::open(&segment)?;
    }
    if bytes_on_disk(dir)? <= CHECKED_BYTES_MAX { check_sums(index) } else { Ok(()) }
}

/// Reads all files and compares their checksums.
pub(crate) fn check_sums(index: &tantivy::Index) -> Result<(), IndexError> {
    let damaged = index.validate_checksum()?;
    match damaged.iter().min() {
        None => Ok(()),
        Some(path) => Err(IndexError::Damaged(format!("the checksum of {} is wrong", path.display()))),
    }
}

/// Whether there is any file that the library writes for segments: their names begin with 32
/// hexadecimal digits.
fn has_segments(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let id = name.split('.').next().unwrap_or_default();
        if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn format_text(schema_text_hash: u64) -> String {
    format!("ombak-search-index {FORMAT} {schema_text_hash:016x}\n")
}

fn check_format(found: &[u8], schema_text_hash: u64) -> Result<(), IndexError> {
    let text = String::from_utf8_lossy(found);
    let words: Vec<&str> = text.split_whitespace().collect();
    let (version, hash) = match words[..] {
        ["ombak-search-index", version, hash] if text.ends_with('\n') => (version, hash),
        _ => return Err(IndexError::Damaged(format!("the file {FORMAT_FILE} has no format"))),
    };
    if version != FORMAT.to_string() {
        return Err(IndexError::OtherSchema(format!("format {version}, and {FORMAT} is needed")));
    }
    if hash != format!("{schema_text_hash:016x}") {
        return Err(IndexError::OtherSchema(String::from("the schema has changed")));
    }
    Ok(())
}

fn write_format(dir: &Path, schema_text_hash: u64) -> io::Result<()> {
    let temporary = dir.join(format!("{FORMAT_FILE}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(format_text(schema_text_hash).as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(FORMAT_FILE))?;
    sync_directory(dir)
}
