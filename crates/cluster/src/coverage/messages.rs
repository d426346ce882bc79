//! The messages of coverage questions. A question and a piece of an answer write and read their own
//! content: the files in `ombak_kv::coverage` have its layout.
//!
//! ```text
//! request   version u8, u64 begun_us, homes, question, fields
//! homes     varint count, then for each: varint home, varint count, varint n of each class
//! question  u8 number of the kind, content
//!
//! item      version u8, u8 number of the kind
//!           of a piece:  head, varint count, entries; fields
//!           1 done:      varint home; fields
//!           3 part:      bytes of an item that is too long, of which more follow: all that is left
//!           4 last:      the last bytes of such an item: all that is left
//! ```
//!
//! The version of the ring and the deadline travel in the header of the transport.

use crate::wire::{Malformed, Reader, Writer, no_fields};
use bytes::Bytes;
use ombak_kv::coverage::{
    BadContent, ContentReader, ContentWriter, CoveragePiece, HOME_DONE, ITEM_PART, LAST_ITEM_PART,
};
use ombak_kv::replica::{CoverageHome, CoverageItem, CoverageQuestion, CoverageRequest};
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use ombak_types::time::UnixMicros;
use smallvec::SmallVec;

/// The most home partitions of a request: those of the largest ring.
const HOMES_MAX: u32 = 1024;
/// The most classes of a home partition.
const CLASSES_MAX: u32 = 1024;

impl ContentWriter for Writer {
    fn u8(&mut self, number: u8) {
        Writer::u8(self, number);
    }

    fn varint(&mut self, number: u64) {
        Writer::varint(self, number);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        Writer::bytes(self, bytes);
    }
}

impl ContentReader for Reader<'_> {
    fn u8(&mut self) -> Result<u8, BadContent> {
        Reader::u8(self).map_err(bad)
    }

    fn varint(&mut self) -> Result<u64, BadContent> {
        Reader::varint(self).map_err(bad)
    }

    fn bytes(&mut self) -> Result<Bytes, BadContent> {
        Reader::bytes(self).map_err(bad)
    }
}

fn bad(Malformed(why): Malformed) -> BadContent {
    BadContent(why)
}

fn malformed(BadContent(why): BadContent) -> Malformed {
    Malformed(why)
}

/// Encodes a request. Its deadline and the version of its ring travel in the header of the
/// transport.
pub(crate) fn encode_coverage_request(request: &CoverageRequest) -> Body {
    let mut out = Writer::of_message();
    out.u64(request.begun.0);
    out.varint(request.homes.len() as u64);
    for part in &request.homes {
        out.varint(u64::from(part.home));
        out.varint(part.classes.len() as u64);
        part.classes.iter().for_each(|n| out.varint(u64::from(*n)));
    }
    out.u8(request.question.number());
    request.question.write(&mut out);
    out.end_fields();
    out.finish()
}

/// Decodes a request that was sent with a ring version, without a deadline.
pub(crate) fn decode_coverage_request(message: &Bytes, ring: RingVersion) -> Result<CoverageRequest, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let r = &mut reader;
    let begun = UnixMicros(r.u64()?);
    let mut homes = Vec::new();
    for _ in 0..count(r, HOMES_MAX)? {
        let home = r.varint32()?;
        let mut classes = SmallVec::new();
        for _ in 0..count(r, CLASSES_MAX)? {
            classes.push(r.varint32()?);
        }
        homes.push(CoverageHome { home, classes });
    }
    let question = CoverageQuestion::read(r.u8()?, r).map_err(malformed)?;
    no_fields(r)?;
    r.end()?;
    Ok(CoverageRequest { question, homes, ring, begun, deadline: None })
}

fn count(r: &mut Reader<'_>, max: u32) -> Result<u32, Malformed> {
    match r.varint32()? {
        count if count <= max => Ok(count),
        _ => Err(Malformed("a list is too long")),
    }
}

/// Encodes an item of an answer as one message or several, each of which has about `bytes_max`
/// bytes at most, or one entry.
pub(crate) fn encode_coverage_item(item: &CoverageItem, bytes_max: usize) -> Vec<Body> {
    match item {
        CoverageItem::Piece(piece) => encode_piece(piece, bytes_max),
        CoverageItem::HomeDone(home) => {
            let mut out = Writer::of_message();
            out.u8(HOME_DONE);
            out.varint(u64::from(*home));
            out.end_fields();
            vec![out.finish()]
        }
    }
}

/// Messages of as many entries as fit.
fn encode_piece(piece: &CoveragePiece, bytes_max: usize) -> Vec<Body> {
    /// More than what an entry has beside its bytes.
    const ENTRY_COST: usize = 16;
    let mut messages = Vec::new();
    let mut at = 0;
    while at < piece.entries() {
        let mut bytes = 0usize;
        let fits = |at: &usize| {
            bytes = bytes.saturating_add(ENTRY_COST).saturating_add(piece.bytes_of(*at));
            bytes <= bytes_max
        };
        let count = (at..piece.entries()).take_while(fits).count().max(1);
        let mut out = Writer::of_message();
        out.u8(piece.number());
        piece.write_head(&mut out);
        out.varint(count as u64);
        (at..at + count).for_each(|at| piece.write_entry(at, &mut out));
        out.end_fields();
        messages.push(out.finish());
        at += count;
    }
    messages
}

/// Cuts an item that is longer than `bytes_max` into parts of about that length. An item has one
/// entry at least, however long that is.
pub(crate) fn split_coverage_item(item: Body, bytes_max: usize) -> Vec<Body> {
    if item.len() <= bytes_max {
        return vec![item];
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    for part in item.parts() {
        let starts = (0..part.len()).step_by(bytes_max);
        pieces.extend(starts.map(|start| part.slice(start..part.len().min(start + bytes_max))));
    }
    let last = pieces.len() - 1;
    let message = |(at, piece): (usize, &Bytes)| {
        let mut out = Writer::of_message();
        out.u8(if at == last { LAST_ITEM_PART } else { ITEM_PART });
        out.finish_with(piece)
    };
    pieces.iter().enumerate().map(message).collect()
}

/// What one message of an answer is.
#[derive(Debug)]
pub(crate) enum CoverageMessage {
    /// A whole item.
    Item(CoverageItem),
    /// A part of an item. The last one says so.
    Part {
        /// The next bytes of the item.
        bytes: Bytes,
        /// Whether the item ends with them.
        is_last: bool,
    },
}

/// Decodes a message of an answer.
pub(crate) fn decode_coverage_message(message: &Bytes) -> Result<CoverageMessage, Malformed> {
    let mut reader = Reader::of_message(message)?;
    match reader.u8()? {
        kind @ (ITEM_PART | LAST_ITEM_PART) => {
            Ok(CoverageMessage::Part { bytes: reader.rest()?, is_last: kind == LAST_ITEM_PART })
        }
        _ => decode_coverage_item(message).map(CoverageMessage::Item),
    }
}

/// Decodes an item.
pub(crate) fn decode_coverage_item(message: &Bytes) -> Result<CoverageItem, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let r = &mut reader;
    let item = match r.u8()? {
        HOME_DONE => CoverageItem::HomeDone(r.varint32()?),
        number => CoverageItem::Piece(CoveragePiece::read(number, r).map_err(malformed)?),
    };
    no_fields(r)?;
    r.end()?;
    Ok(item)
}
