//! The bytes of the question of a fold and of its pieces; the module has the layout.

use crate::coverage::questions::content::{owned, read_bucket, read_count, write_bucket};
use crate::folds::{FoldOf, FoldRange, FoldStats, FoldWants, Found, FoundKey, GatheredEntry, SegmentFilter};
use crate::replica::{BadContent, ContentReader, ContentWriter, CoveragePiece, PieceContent};
use ombak_tictac::{ClockHash, TreeSize};
use ombak_types::stored_object::{decode_clock, encode_clock};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const PIECE_NUMBER: u8 = 5;

const KEYS: u8 = 1;
const MODIFIED: u8 = 2;
const SEGMENTS: u8 = 4;

pub(super) fn write_range(range: &FoldRange, out: &mut dyn ContentWriter) {
    match &range.of {
        FoldOf::Bucket(bucket) => {
            out.u8(0);
            write_bucket(bucket, out);
        }
        FoldOf::Classes(classes) => {
            out.u8(1);
            write_numbers(classes, out);
        }
    }
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.u8(flag(range.keys.is_some(), KEYS)
        | flag(range.modified.is_some(), MODIFIED)
        | flag(range.segments.is_some(), SEGMENTS));
    if let Some((first, last)) = &range.keys {
        out.bytes(first);
        out.bytes(last);
    }
    if let Some((first, last)) = range.modified {
        out.varint(first.into());
        out.varint(last.into());
    }
    if let Some(SegmentFilter { size, leaves }) = &range.segments {
        out.u8(size.number());
        write_numbers(leaves, out);
    }
}

pub(super) fn read_range(content: &mut dyn ContentReader) -> Result<FoldRange, BadContent> {
    let of = match content.u8()? {
        0 => FoldOf::Bucket(read_bucket(content)?),
        1 => FoldOf::Classes(read_numbers(content)?),
        _ => return Err(BadContent("a fold is over something that is not known")),
    };
    let flags = content.u8()?;
    if flags & !(KEYS | MODIFIED | SEGMENTS) != 0 {
        return Err(BadContent("a flag of the fold is not known"));
    }
    let has = |flag: u8| flags & flag != 0;
    let keys = if has(KEYS) { Some((owned(&content.bytes()?), owned(&content.bytes()?))) } else { None };
    let modified = if has(MODIFIED) { Some((content.varint32()?, content.varint32()?)) } else { None };
    let segments = if has(SEGMENTS) {
        Some(SegmentFilter { size: read_size(content)?, leaves: read_numbers(content)? })
    } else {
        None
    };
    Ok(FoldRange { of, keys, modified, segments })
}

pub(super) fn write_wants(wants: FoldWants, out: &mut dyn ContentWriter) {
    match wants {
        FoldWants::Clocks => out.u8(0),
        FoldWants::Tombstones => out.u8(1),
        FoldWants::Living => out.u8(2),
        FoldWants::SiblingsAbove(above) => {
            out.u8(3);
            out.varint(above);
        }
        FoldWants::BytesAbove(above) => {
            out.u8(4);
            out.varint(above);
        }
        FoldWants::Stats => out.u8(5),
        FoldWants::Tree(size, hash) => {
            out.u8(6);
            write_tree(size, hash, out);
        }
        FoldWants::Buckets => out.u8(7),
        FoldWants::Root(size, hash) => {
            out.u8(8);
            write_tree(size, hash, out);
        }
    }
}

fn write_tree(size: TreeSize, hash: ClockHash, out: &mut dyn ContentWriter) {
    out.u8(size.number());
    match hash {
        ClockHash::Plain => out.u8(0),
        ClockHash::With(number) => {
            out.u8(1);
            out.varint(number);
        }
        ClockHash::WithoutNumber => out.u8(2),
    }
}

pub(super) fn read_wants(content: &mut dyn ContentReader) -> Result<FoldWants, BadContent> {
    Ok(match content.u8()? {
        0 => FoldWants::Clocks,
        1 => FoldWants::Tombstones,
        2 => FoldWants::Living,
        3 => FoldWants::SiblingsAbove(content.varint()?),
        4 => FoldWants::BytesAbove(content.varint()?),
        5 => FoldWants::Stats,
        6 => FoldWants::Tree(read_size(content)?, read_hash(content)?),
        7 => FoldWants::Buckets,
        8 => FoldWants::Root(read_size(content)?, read_hash(content)?),
        _ => return Err(BadContent("a fold wants something that is not known")),
    })
}

fn read_hash(content: &mut dyn ContentReader) -> Result<ClockHash, BadContent> {
    match content.u8()? {
        0 => Ok(ClockHash::Plain),
        1 => Ok(ClockHash::With(content.varint()?)),
        2 => Ok(ClockHash::WithoutNumber),
        _ => Err(BadContent("a hash of clocks is not known")),
    }
}

fn read_size(content: &mut dyn ContentReader) -> Result<TreeSize, BadContent> {
    TreeSize::of_number(content.u8()?.into()).ok_or(BadContent("a size of trees is not known"))
}

fn write_numbers(numbers: &BTreeSet<u32>, out: &mut dyn ContentWriter) {
    out.varint(numbers.len() as u64);
    numbers.iter().for_each(|number| out.varint((*number).into()));
}

fn read_numbers(content: &mut dyn ContentReader) -> Result<BTreeSet<u32>, BadContent> {
    (0..content.varint32()?).map(|_| content.varint32()).collect()
}

/// What the store of a home partition has gathered, or a part of it.
#[derive(Debug)]
pub(super) struct GatheredPiece {
    pub(super) home: u32,
    pub(super) entries: Vec<GatheredEntry>,
}

impl CoveragePiece {
    /// A piece of what the store of a home partition has gathered. It has one entry at least.
    pub fn gathered(home: u32, entries: Vec<GatheredEntry>) -> Self {
        Self::new(GatheredPiece { home, entries })
    }
}

impl PieceContent for GatheredPiece {
    fn number(&self) -> u8 {
        PIECE_NUMBER
    }

    fn write_head(&self, out: &mut dyn ContentWriter) {
        out.varint(u64::from(self.home));
    }

    fn entries(&self) -> usize {
        self.entries.len()
    }

    fn bytes_of(&self, at: usize) -> usize {
        self.entries[at].bytes()
    }

    fn write_entry(&self, at: usize, out: &mut dyn ContentWriter) {
        match &self.entries[at] {
            GatheredEntry::Key(FoundKey { bucket, key, found }) => {
                out.u8(match found {
                    Found::Clock(_) => 0,
                    Found::Number(_) => 1,
                });
                write_bucket(bucket, out);
                out.bytes(key);
                match found {
                    Found::Clock(clock) => out.bytes(&encode_clock(clock)),
                    Found::Number(number) => out.varint(*number),
                }
            }
            GatheredEntry::Bucket(bucket) => {
                out.u8(2);
                write_bucket(bucket, out);
            }
            GatheredEntry::Branch(branch, leaves) => {
                out.u8(3);
                out.varint(u64::from(*branch));
                out.bytes(leaves);
            }
            GatheredEntry::Stats(stats) => {
                out.u8(4);
                write_stats(stats, out);
            }
            GatheredEntry::Root(hashes) => {
                out.u8(5);
                out.bytes(hashes);
            }
        }
    }
}

pub(super) fn read_piece(content: &mut dyn ContentReader) -> Result<CoveragePiece, BadContent> {
    let home = content.varint32()?;
    let entries = (0..read_count(content)?).map(|_| read_entry(content)).collect::<Result<_, _>>()?;
    Ok(CoveragePiece::gathered(home, entries))
}

fn read_entry(content: &mut dyn ContentReader) -> Result<GatheredEntry, BadContent> {
    let kind = content.u8()?;
    Ok(match kind {
        0 | 1 => {
            let (bucket, key) = (read_bucket(content)?, owned(&content.bytes()?));
            let found = if kind == 0 {
                let clock = decode_clock(&content.bytes()?).map_err(|_| BadContent("a clock does not decode"))?;
                Found::Clock(clock)
            } else {
                Found::Number(content.varint()?)
            };
            GatheredEntry::Key(FoundKey { bucket, key, found })
        }
        2 => GatheredEntry::Bucket(read_bucket(content)?),
        3 => GatheredEntry::Branch(content.varint32()?, content.bytes()?.to_vec()),
        4 => GatheredEntry::Stats(read_stats(content)?),
        5 => GatheredEntry::Root(content.bytes()?.to_vec()),
        _ => return Err(BadContent("a part of a fold is of no known kind")),
    })
}

fn write_stats(stats: &FoldStats, out: &mut dyn ContentWriter) {
    out.varint(stats.objects);
    out.varint(stats.bytes);
    for orders in [&stats.sizes, &stats.siblings] {
        out.varint(orders.len() as u64);
        for (order, count) in orders {
            out.varint(u64::from(*order));
            out.varint(*count);
        }
    }
}

fn read_stats(content: &mut dyn ContentReader) -> Result<FoldStats, BadContent> {
    let (objects, bytes) = (content.varint()?, content.varint()?);
    Ok(FoldStats { objects, bytes, sizes: read_orders(content)?, siblings: read_orders(content)? })
}

fn read_orders(content: &mut dyn ContentReader) -> Result<BTreeMap<u32, u64>, BadContent> {
    (0..content.varint32()?).map(|_| Ok((content.varint32()?, content.varint()?))).collect()
}
