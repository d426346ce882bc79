//! Index entries or keys of a bucket, in order: an index query. Its merging part is
//! `crate::coverage::EntriesRun`.
//!
//! ```text
//! question  bytes bucket_type, bytes name, u8 flags (1 after, 2 results_max, 4 pattern, 8
//!           tombstones), [u8 has_term, term if 1, bytes key], [varint results_max],
//!           [bytes pattern], then
//!           of terms:  bytes field, term from, term to
//!           of keys:   bound from, bound to
//! piece     varint count, then for each: u8 has_term, term if 1, bytes key
//! term      u8 (0 integer, 1 binary), bytes (an integer: two's complement, little-endian)
//! bound     u8 (0 none, 1 included, 2 excluded), bytes if not 0
//! ```
//!
//! The pattern matches bytes, as in [`crate::compile_pattern`]. It has been applied to what comes
//! back, and the maximum number of results counts for each node. Pieces are of all home partitions
//! of a request, merged in order: no entry that comes later is smaller.

use super::content::{VERSION_1, owned, read_bucket, read_count, write_bucket};
use crate::coverage::local_part::{Here, LocalPart, OpenedPart, Step};
use crate::coverage::question_kind::{PieceKind, Question, QuestionKind};
use crate::engine::WorkClass;
use crate::query::{QueryWalk, SharedWalk};
use crate::replica::{
    BadContent, ContentReader, ContentWriter, CoverageItem, CoveragePiece, CoverageQuestion, PieceContent,
    QuestionContent,
};
use crate::requests::{IndexMatch, IndexQuery, QueryRange, compile_pattern};
use bytes::Bytes;
use num_bigint::BigInt;
use ombak_runtime::Waited;
use ombak_types::{Error, IndexTerm};
use std::ops::Bound;

/// The longest integer term in bytes. Index entries have no longer ones.
const INTEGER_BYTES_MAX: usize = u16::MAX as usize + 1;

const AFTER: u8 = 1;
const RESULTS_MAX: u8 = 2;
const PATTERN: u8 = 4;
const TOMBSTONES: u8 = 8;

const TERMS_NUMBER: u8 = 2;
const KEY_RANGE_NUMBER: u8 = 3;
const PIECE_NUMBER: u8 = 2;

const PIECE: PieceKind = PieceKind { number: PIECE_NUMBER, name: "index entries", read: read_entries };

/// The question for the entries of an index.
pub(in crate::coverage) const TERMS: QuestionKind =
    QuestionKind::of::<IndexQuery>((TERMS_NUMBER, "index entries"), VERSION_1, read_terms_query, PIECE);

/// The question for the keys of a range.
pub(in crate::coverage) const KEY_RANGE: QuestionKind =
    QuestionKind::of::<IndexQuery>((KEY_RANGE_NUMBER, "keys of a range"), VERSION_1, read_key_query, PIECE);

impl CoverageQuestion {
    /// Asks for the results of an index query.
    pub fn index_query(query: IndexQuery) -> Self {
        Self::new(query)
    }
}

impl QuestionContent for IndexQuery {
    fn number(&self) -> u8 {
        match self.range {
            QueryRange::Terms { .. } => TERMS_NUMBER,
            QueryRange::Keys { .. } => KEY_RANGE_NUMBER,
        }
    }

    fn write(&self, out: &mut dyn ContentWriter) {
        write_bucket(&self.bucket, out);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.u8(flag(self.after.is_some(), AFTER)
            | flag(self.results_max.is_some(), RESULTS_MAX)
            | flag(self.pattern.is_some(), PATTERN)
            | flag(self.shows_tombstones, TOMBSTONES));
        if let Some((term, key)) = &self.after {
            write_optional_term(term.as_ref(), out);
            out.bytes(key);
        }
        if let Some(results_max) = self.results_max {
            out.varint(results_max as u64);
        }
        if let Some(pattern) = &self.pattern {
            out.bytes(pattern.as_str().as_bytes());
        }
        match &self.range {
            QueryRange::Terms { field, from, to } => {
                out.bytes(field);
                write_term(from, out);
                write_term(to, out);
            }
            QueryRange::Keys { from, to } => {
                write_bound(from, out);
                write_bound(to, out);
            }
        }
    }
}

fn read_terms_query(content: &mut dyn ContentReader) -> Result<CoverageQuestion, BadContent> {
    read_query(content, |content| {
        Ok(QueryRange::Terms { field: owned(&content.bytes()?), from: read_term(content)?, to: read_term(content)? })
    })
}

fn read_key_query(content: &mut dyn ContentReader) -> Result<CoverageQuestion, BadContent> {
    read_query(content, |content| Ok(QueryRange::Keys { from: read_bound(content)?, to: read_bound(content)? }))
}

fn read_query(
    content: &mut dyn ContentReader,
    read_range: fn(&mut dyn ContentReader) -> Result<QueryRange, BadContent>,
) -> Result<CoverageQuestion, BadContent> {
    let bucket = read_bucket(content)?;
    let flags = content.u8()?;
    if flags & !(AFTER | RESULTS_MAX | PATTERN | TOMBSTONES) != 0 {
        return Err(BadContent("a flag of the query is not known"));
    }
    let has = |flag: u8| flags & flag != 0;
    let after = if has(AFTER) { Some((read_optional_term(content)?, owned(&content.bytes()?))) } else { None };
    let results_max = if has(RESULTS_MAX) {
        Some(usize::try_from(content.varint()?).map_err(|_| BadContent("a number is too large"))?)
    } else {
        None
    };
    let pattern = if has(PATTERN) {
        let text = content.bytes()?;
        let text = str::from_utf8(&text).map_err(|_| BadContent("a pattern is not UTF-8"))?;
        Some(compile_pattern(text).map_err(|_| BadContent("a pattern does not compile"))?)
    } else {
        None
    };
    let range = read_range(content)?;
    let shows_tombstones = has(TOMBSTONES);
    Ok(CoverageQuestion::index_query(IndexQuery { bucket, range, after, results_max, pattern, shows_tombstones }))
}

/// Results of an index query, in order.
#[derive(Debug)]
pub(crate) struct IndexMatches(pub(crate) Vec<IndexMatch>);

impl PieceContent for IndexMatches {
    fn number(&self) -> u8 {
        PIECE_NUMBER
    }

    fn entries(&self) -> usize {
        self.0.len()
    }

    fn bytes_of(&self, at: usize) -> usize {
        let found = &self.0[at];
        let term = match &found.term {
            None => 0,
            Some(IndexTerm::Bin(term)) => term.len(),
            Some(IndexTerm::Int(term)) => usize::try_from(term.bits() / 8).unwrap_or(usize::MAX),
        };
        term.saturating_add(found.key.len())
    }

    fn write_entry(&self, at: usize, out: &mut dyn ContentWriter) {
        write_optional_term(self.0[at].term.as_ref(), out);
        out.bytes(&self.0[at].key);
    }
}

fn read_entries(content: &mut dyn ContentReader) -> Result<CoveragePiece, BadContent> {
    let mut entries = Vec::new();
    for _ in 0..read_count(content)? {
        entries.push(IndexMatch { term: read_optional_term(content)?, key: content.bytes()? });
    }
    Ok(CoveragePiece::index_matches(entries))
}

impl CoveragePiece {
    /// A piece of results of an index query, in order.
    pub fn index_matches(matches: Vec<IndexMatch>) -> Self {
        Self::new(IndexMatches(matches))
    }

    /// The results, if it is a piece of an index query.
    pub fn into_index_matches(self) -> Option<Vec<IndexMatch>> {
        self.into_content().map(|IndexMatches(matches)| matches)
    }
}

impl Question for IndexQuery {
    fn open(&self, here: Here) -> OpenedPart {
        let mut query = self.clone();
        query.shows_tombstones &= here.engine.config.queries.shows_tombstones;
        let partitions: Result<Vec<_>, Error> = here.homes.iter().map(|home| here.partition(home.home)).collect();
        let walk = QueryWalk::new(partitions?.into_iter(), query, here.begun);
        let holders = here.engine.partitions().snapshot_holders().clone();
        Ok(Box::new(EntriesPart(SharedWalk::new(walk, holders))))
    }
}

/// The local part: it merges the entries of all home partitions of the request.
struct EntriesPart(SharedWalk);

impl LocalPart for EntriesPart {
    fn work_class(&self) -> WorkClass {
        WorkClass::IndexQuery
    }

    fn step(&mut self, _: &Waited<'_>) -> Result<Step, Error> {
        let batch = self.0.next_batch()?;
        let is_over = batch.is_none();
        let entries = batch.filter(|entries| !entries.is_empty());
        let items = entries.map(|entries| CoverageItem::Piece(CoveragePiece::index_matches(entries)));
        Ok(Step { items: items.into_iter().collect(), is_over })
    }
}

fn write_optional_term(term: Option<&IndexTerm>, out: &mut dyn ContentWriter) {
    out.u8(u8::from(term.is_some()));
    if let Some(term) = term {
        write_term(term, out);
    }
}

fn read_optional_term(content: &mut dyn ContentReader) -> Result<Option<IndexTerm>, BadContent> {
    match content.u8()? {
        0 => Ok(None),
        1 => read_term(content).map(Some),
        _ => Err(BadContent("a term is neither there nor absent")),
    }
}

fn write_term(term: &IndexTerm, out: &mut dyn ContentWriter) {
    match term {
        IndexTerm::Int(number) => {
            out.u8(0);
            out.bytes(&number.to_signed_bytes_le());
        }
        IndexTerm::Bin(bytes) => {
            out.u8(1);
            out.bytes(bytes);
        }
    }
}

fn read_term(content: &mut dyn ContentReader) -> Result<IndexTerm, BadContent> {
    match (content.u8()?, content.bytes()?) {
        (0, bytes) if bytes.len() <= INTEGER_BYTES_MAX => Ok(IndexTerm::Int(BigInt::from_signed_bytes_le(&bytes))),
        (1, bytes) => Ok(IndexTerm::Bin(owned(&bytes))),
        _ => Err(BadContent("a term is of no known kind")),
    }
}

fn write_bound(bound: &Bound<Bytes>, out: &mut dyn ContentWriter) {
    match bound {
        Bound::Unbounded => out.u8(0),
        Bound::Included(key) => {
            out.u8(1);
            out.bytes(key);
        }
        Bound::Excluded(key) => {
            out.u8(2);
            out.bytes(key);
        }
    }
}

fn read_bound(content: &mut dyn ContentReader) -> Result<Bound<Bytes>, BadContent> {
    match content.u8()? {
        0 => Ok(Bound::Unbounded),
        1 => Ok(Bound::Included(owned(&content.bytes()?))),
        2 => Ok(Bound::Excluded(owned(&content.bytes()?))),
        _ => Err(BadContent("a bound is of no known kind")),
    }
}
