//! The byte formats of the library's files, as far as this project reads them without the library.
//!
//! ```text
//! current   version u64, checksum of the list u128, its kind u8 (0: XXH3)
//! v<n>      the list, an archive of sections; `tables`: levels u8, then for each: runs u8,
//!           then for each: tables u32, then for each: id u64, kind of checksum u8,
//!           checksum of its file u128, what to add to its sequence numbers u64
//! tables/<id>   blocks, then an archive's table of contents. A block: magic 4, kind u8,
//!               checksum of its bytes u128, length u32, length before compression u32,
//!               low half of a checksum of all that u32, bytes
//! ```
//!
//! All integers are little-endian.

use super::files::TreeDamage;
use crate::journal::le_at;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// The length of the file `current`.
pub(super) const CURRENT_BYTES: usize = 25;
const BLOCK_MAGIC: &[u8; 4] = b"LSM\x03";
const BLOCK_HEADER_BYTES: usize = 33;
/// Magic, version and kind of checksum of an archive.
const TRAILER_START: &[u8] = b"SFA!\x01\x00";
/// The length of an archive's end, after its table of contents.
pub(super) const TRAILER_BYTES: usize = 38;
/// Longer than any table of contents: an archive has about ten sections.
const CONTENTS_BYTES_MAX: u64 = 64 << 10;
const CHUNK_BYTES: usize = 256 << 10;

/// A table in the list of tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableFile {
    pub(super) id: u64,
    pub(super) checksum: u128,
    pub(super) seqno_base: u64,
}

/// The version of the list and the checksum that the file `current` names; none if it is damaged.
pub(super) fn decode_current(bytes: &[u8]) -> Option<(u64, u128)> {
    let is_whole = bytes.len() == CURRENT_BYTES && bytes[CURRENT_BYTES - 1] == 0;
    is_whole.then(|| (le_at!(u64, bytes, 0), le_at!(u128, bytes, 8)))
}

/// The runs of tables in a list of tables; none if it is damaged.
pub(super) fn decode_list(list: &[u8]) -> Option<Vec<Vec<TableFile>>> {
    let reader = sfa::Reader::from_reader(&mut io::Cursor::new(list)).ok()?;
    let section = reader.toc().section(b"tables")?;
    let start = usize::try_from(section.pos()).ok()?;
    let mut rest = list.get(start..)?.get(..usize::try_from(section.len()).ok()?)?;
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        rest = left;
        Some(taken)
    };
    let mut runs = Vec::new();
    for _ in 0..take(1)?[0] {
        for _ in 0..take(1)?[0] {
            let mut run = Vec::new();
            for _ in 0..le_at!(u32, take(4)?, 0) {
                let table = take(33)?;
                let [id, seqno_base] = [le_at!(u64, table, 0), le_at!(u64, table, 25)];
                run.push(TableFile { id, checksum: le_at!(u128, table, 9), seqno_base });
            }
            runs.push(run);
        }
    }
    Some(runs)
}

/// Whether the table of contents at the end of an archive is intact. After it follow: magic 4,
/// version u8, kind of checksum u8, checksum of the table of contents u128, its start u64, its
/// length u64.
pub(super) fn has_contents(file: &File) -> io::Result<bool> {
    let Some(end) = file.metadata()?.len().checked_sub(TRAILER_BYTES as u64) else { return Ok(false) };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, end)?;
    let (start, length) = (le_at!(u64, trailer, 22), le_at!(u64, trailer, 30));
    if !trailer.starts_with(TRAILER_START) || length > CONTENTS_BYTES_MAX || start.checked_add(length) != Some(end) {
        return Ok(false);
    }
    let mut contents = vec![0; length as usize];
    file.read_exact_at(&mut contents, start)?;
    Ok(xxh3_128(&contents) == le_at!(u128, trailer, 6))
}

/// The damaged parts of a table whose checksum is wrong: blocks or, if all blocks are intact, the
/// parts between them.
pub(super) fn damaged_blocks(path: &Path) -> io::Result<Vec<TreeDamage>> {
    let file = File::open(path)?;
    let end = file.metadata()?.len();
    let damaged =
        |from: u64, to: u64, what| TreeDamage { file: path.to_owned(), offset: from, length: to - from, what };
    let (mut blocks, mut between) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some((start, length)) = next_block(&file, at, end)? {
        if start > at {
            between.push(damaged(at, start, "no block, and not what the table should have there"));
        }
        let stop = end.min(start + length);
        let mut bytes = vec![0; (stop - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        if stop - start < length || xxh3_128(&bytes[BLOCK_HEADER_BYTES..]) != le_at!(u128, bytes, 5) {
            blocks.push(damaged(start, stop, "the checksum of a block is wrong"));
        }
        at = stop;
    }
    between.push(damaged(at, end, "its table of contents is wrong"));
    Ok(if blocks.is_empty() { between } else { blocks })
}

/// The offset and the length of the first block from `from` on whose header matches its checksum.
fn next_block(file: &File, from: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    let mut at = from;
    let mut window = Vec::new();
    while at + BLOCK_HEADER_BYTES as u64 <= end {
        window.resize(CHUNK_BYTES.min((end - at) as usize), 0);
        file.read_exact_at(&mut window, at)?;
        for (place, header) in window.windows(BLOCK_HEADER_BYTES).enumerate() {
            let (content, crc) = header.split_at(BLOCK_HEADER_BYTES - 4);
            if content.starts_with(BLOCK_MAGIC) && xxh3_128(content) as u32 == le_at!(u32, crc, 0) {
                let length = u64::from(le_at!(u32, content, 21)) + BLOCK_HEADER_BYTES as u64;
                return Ok(Some((at + place as u64, length)));
            }
        }
        at += (window.len() - BLOCK_HEADER_BYTES + 1) as u64;
    }
    Ok(None)
}
