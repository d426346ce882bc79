//! What a file holds after a restart.
//!
//! A loss of power can leave any mixture of the sectors of an append that was not acknowledged.
//! Damage can change any sector of what was. Both look the same at their own place. Records and
//! seals after that place tell them apart: each says how much of the file was durable when it was
//! written. If that covers the unreadable place, something acknowledged is damaged, and a person
//! has to decide. Otherwise nobody was promised what is lost, and the rest of the file is removed.

use super::format::{self, BadHeader, FORMAT, HEADER_BYTES, Record};
use super::log_file::LogContent;
use bytes::Bytes;

/// A file that was read.
pub(super) struct Recovered {
    pub identity: u64,
    pub content: LogContent,
    /// Where the readable records end.
    pub end: usize,
}

/// Reads a whole file. The error says what is wrong, in words that follow the file's name.
pub(super) fn recover(file: &[u8]) -> Result<Recovered, String> {
    let identity = format::read_header(file).map_err(|bad| match bad {
        BadHeader::Damaged => "is damaged (its header is not readable)".to_owned(),
        BadHeader::Format(format) => format!("has format {format}, and this version of ombak reads format {FORMAT}"),
    })?;
    let mut content = LogContent::default();
    let mut end = HEADER_BYTES;
    while let Some(found) = next(file, end, identity) {
        let fits = add(&mut content, &found.record);
        if !fits {
            return Err(format!("is damaged (the record at byte {end} does not fit those before it)"));
        }
        end = found.end;
    }
    if format::was_durable(file, end, identity) {
        return Err(format!("is damaged (byte {end} begins no valid record, and was written completely once)"));
    }
    Ok(Recovered { identity, content, end })
}

fn next(file: &[u8], end: usize, identity: u64) -> Option<format::Found<'_>> {
    format::read_record(file, end, identity).or_else(|| format::read_seal(file, end, identity))
}

/// Adds a record to what the records before it say. Returns whether it fits.
fn add(content: &mut LogContent, record: &Record<'_>) -> bool {
    match record {
        Record::Entry { index, entry } => {
            if content.check_next(*index, entry).is_err() {
                return false;
            }
            content.entries.insert(*index, Bytes::copy_from_slice(entry));
        }
        Record::RemoveFrom { index } => content.remove_from(*index),
        Record::Committed { which } => content.committed = Some(Bytes::copy_from_slice(which)),
        // Only the first record of a new file says this.
        Record::Purged { index, which } => {
            if *content != LogContent::default() {
                return false;
            }
            content.purged = Some((*index, Bytes::copy_from_slice(which)));
        }
        Record::Seal => {}
    }
    true
}
