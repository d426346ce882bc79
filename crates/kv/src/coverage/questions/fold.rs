//! What a fold gathers of the objects of home partitions (`crate::folds`).
//!
//! ```text
//! question  u8 of (0 a bucket: bytes bucket_type, bytes name; 1 classes: varint count, varint n
//!           each), u8 flags (1 keys, 2 modified, 4 segments), [bytes first, bytes last],
//!           [varint first second, varint last second],
//!           [u8 tree size, varint count, varint leaf each],
//!           u8 wants (0 clocks, 1 tombstones, 2 living, 3 siblings: varint above, 4 bytes: varint
//!           above, 5 statistics, 6 tree: u8 size, u8 hash (0 plain, 1 with varint, 2 without a
//!           number), 7 buckets, 8 root of a tree: u8 size, u8 hash)
//! piece     varint home, varint count, then for each u8 kind and
//!           0 clock of a key: bytes bucket_type, bytes name, bytes key, bytes clock
//!           1 number of a key: bytes bucket_type, bytes name, bytes key, varint number
//!           2 bucket: bytes bucket_type, bytes name
//!           3 branch: varint number, bytes leaves
//!           4 statistics: varint objects, varint bytes, then twice (sizes, siblings): varint
//!             count, (varint order, varint objects) each
//!           5 root: bytes hashes
//! ```
//!
//! Clocks have the layout of `ombak_types::stored_object`. What a home partition has gathered
//! counts when the home partition is done, and never twice.

use super::content::{owned, read_bucket, read_count, write_bucket};
use crate::coverage::homes_run::{HomesMerge, HomesRun};
use crate::coverage::local_part::{Here, LocalPart, OpenedPart, Step};
use crate::coverage::planner::Planner;
use crate::coverage::question_kind::{PieceKind, Question, QuestionKind};
use crate::engine::WorkClass;
use crate::folds::{
    FOUND_MAX, FoldOf, FoldRange, FoldResult, FoldStats, FoldWalk, FoldWants, Found, FoundKey, GatheredEntry,
    KeyConsumer, SegmentFilter, gather_kept, kept_class,
};
use crate::replica::{
    BadContent, ContentReader, ContentWriter, CoverageHome, CoverageItem, CoveragePiece, CoverageQuestion,
    PieceContent, QuestionContent,
};
use crate::requests::MemoryReservation;
use ombak_tictac::{ClockHash, TreeSize};
use ombak_types::stored_object::{decode_clock, encode_clock};
use ombak_types::{Error, StoreFailure};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a node says that answers folds.
const CAPABILITY: &str = "fold.1";

const NUMBER: u8 = 4;
const PIECE_NUMBER: u8 = 5;

/// About how many index entries one step reads.
const STEP_ENTRIES: usize = 1_000;
/// Over how many home partitions one step goes at most, if they have no objects.
const HOMES_MAX: usize = 16;

const KEYS: u8 = 1;
const MODIFIED: u8 = 2;
const SEGMENTS: u8 = 4;

const PIECE: PieceKind = PieceKind { number: PIECE_NUMBER, name: "what a fold has gathered", read: read_piece };

/// The question of a fold.
pub(in crate::coverage) const KIND: QuestionKind =
    QuestionKind::of::<Fold>((NUMBER, "fold"), CAPABILITY, read_question, PIECE);

#[derive(Clone, Debug)]
struct Fold {
    range: Arc<FoldRange>,
    wants: FoldWants,
}

impl CoverageQuestion {
    /// Asks for what a fold gathers.
    pub fn fold(range: Arc<FoldRange>, wants: FoldWants) -> Self {
        Self::new(Fold { range, wants })
    }
}

impl QuestionContent for Fold {
    fn number(&self) -> u8 {
        NUMBER
    }

    fn write(&self, out: &mut dyn ContentWriter) {
        write_range(&self.range, out);
        write_wants(self.wants, out);
    }
}

fn read_question(content: &mut dyn ContentReader) -> Result<CoverageQuestion, BadContent> {
    let range = Arc::new(read_range(content)?);
    Ok(CoverageQuestion::fold(range, read_wants(content)?))
}

fn write_range(range: &FoldRange, out: &mut dyn ContentWriter) {
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

fn read_range(content: &mut dyn ContentReader) -> Result<FoldRange, BadContent> {
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

fn write_wants(wants: FoldWants, out: &mut dyn ContentWriter) {
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

fn read_wants(content: &mut dyn ContentReader) -> Result<FoldWants, BadContent> {
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
struct GatheredPiece {
    home: u32,
    entries: Vec<GatheredEntry>,
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

fn read_piece(content: &mut dyn ContentReader) -> Result<CoveragePiece, BadContent> {
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

impl Question for Fold {
    fn open(&self, here: Here) -> OpenedPart {
        let homes = here.homes.iter().cloned().collect();
        Ok(Box::new(FoldPart { here, fold: self.clone(), homes, walk: None }))
    }
}

/// The local part: it folds over one home partition after the other.
struct FoldPart {
    here: Here,
    fold: Fold,
    /// The home partitions of which something is still to be sent.
    homes: VecDeque<CoverageHome>,
    /// The walk over the first of them, if it has begun.
    walk: Option<FoldWalk>,
}

impl LocalPart for FoldPart {
    fn work_class(&self) -> WorkClass {
        match self.fold.wants {
            FoldWants::Clocks | FoldWants::Tree(..) | FoldWants::Root(..) => WorkClass::Comparison,
            _ => WorkClass::Operation,
        }
    }

    fn step(&mut self) -> Result<Step, Error> {
        let (mut items, mut budget) = (Vec::new(), STEP_ENTRIES);
        for _ in 0..HOMES_MAX {
            let Some(CoverageHome { home, classes }) = self.homes.front() else { break };
            if self.walk.is_none()
                && let Some(entries) = self.kept_parts(*home)?
            {
                budget = budget.saturating_sub(entries.len());
                push_piece(&mut items, *home, entries);
                items.push(CoverageItem::HomeDone(*home));
                self.homes.pop_front();
                if budget == 0 {
                    break;
                }
                continue;
            }
            let mut walk = match self.walk.take() {
                Some(walk) => walk,
                None => {
                    let of = (self.fold.range.clone(), self.fold.wants);
                    FoldWalk::new(&*self.here.partition(*home)?, of, classes, self.here.begun)?
                }
            };
            if let Some(entries) = walk.next_batch(&self.here.engine.buckets, &mut budget)? {
                push_piece(&mut items, *home, entries);
                self.walk = Some(walk);
            } else {
                push_piece(&mut items, *home, walk.finish());
                items.push(CoverageItem::HomeDone(*home));
                self.homes.pop_front();
            }
            if budget == 0 || !items.is_empty() && self.walk.is_some() {
                break;
            }
        }
        Ok(Step { items, is_over: self.homes.is_empty() })
    }
}

impl FoldPart {
    /// What a home partition answers from a kept tree, if it has one and the question is of that
    /// kind.
    fn kept_parts(&self, home: u32) -> Result<Option<Vec<GatheredEntry>>, Error> {
        let Fold { range, wants } = &self.fold;
        let Some(n) = kept_class(range, *wants) else { return Ok(None) };
        self.here.engine.tree_keeping.asked(n);
        Ok(gather_kept(&*self.here.partition(home)?, n, (range, *wants)))
    }
}

/// A piece has one entry at least.
fn push_piece(items: &mut Vec<CoverageItem>, home: u32, entries: Vec<GatheredEntry>) {
    if !entries.is_empty() {
        items.push(CoverageItem::Piece(CoveragePiece::gathered(home, entries)));
    }
}

/// Folds over all nodes. What they send is reserved as it comes.
pub(crate) async fn fold(
    planner: Planner,
    (range, wants): (Arc<FoldRange>, FoldWants),
    classes: &[u32],
    room: &mut dyn MemoryReservation,
) -> Result<FoldResult, Error> {
    let mut run = FoldRun::new(planner, (range, wants), classes)?;
    let mut received_bytes = 0;
    while let Some(bytes) = run.homes.next_batch().await? {
        received_bytes += bytes;
        room.reserve(received_bytes).await?;
    }
    run.finish()
}

/// Folds over all nodes for keys, and gives them to a consumer, home partition by home partition.
/// Returns their number. What waits for the end of its home partition is reserved.
pub(crate) async fn fold_keys(
    planner: Planner,
    (range, wants): (Arc<FoldRange>, FoldWants),
    classes: &[u32],
    room: &mut dyn MemoryReservation,
    consumer: &mut dyn KeyConsumer,
) -> Result<u64, Error> {
    let mut run = FoldRun::new(planner, (range, wants), classes)?;
    let (mut keys, mut reserved_bytes) = (0, 0);
    while let Some(_bytes) = run.homes.next_batch().await? {
        let (found, waiting_bytes) = run.take_keys()?;
        // A reservation is never given back before the end.
        reserved_bytes = waiting_bytes.max(reserved_bytes);
        room.reserve(reserved_bytes).await?;
        keys += found.len() as u64;
        consumer.take(found).await?;
    }
    let last = run.finish()?.keys;
    keys += last.len() as u64;
    consumer.take(last).await?;
    Ok(keys)
}

/// A fold that is under way.
struct FoldRun {
    homes: HomesRun<GatheredPiece, u64>,
    merge: Arc<Mutex<FoldMerge>>,
}

impl FoldRun {
    fn new(planner: Planner, (range, wants): (Arc<FoldRange>, FoldWants), classes: &[u32]) -> Result<Self, Error> {
        let merge = Arc::new(Mutex::new(FoldMerge::new(FoldResult::empty(&wants))));
        let shared = Box::new(SharedMerge(merge.clone()));
        let homes = HomesRun::new(planner, CoverageQuestion::fold(range, wants), classes, shared)?;
        Ok(Self { homes, merge })
    }

    /// Takes the keys of the home partitions that are done. Returns also how many bytes came and
    /// are not taken.
    fn take_keys(&self) -> Result<(Vec<FoundKey>, u64), Error> {
        let mut merge = self.merge.lock();
        let found = match &mut merge.result {
            Ok(result) => result.take_keys(),
            Err(error) => return Err(error.clone()),
        };
        Ok((found, merge.waiting_bytes))
    }

    fn finish(self) -> Result<FoldResult, Error> {
        drop(self.homes);
        let merge = Arc::into_inner(self.merge);
        merge.ok_or_else(|| StoreFailure::internal("a fold goes on after its end"))?.into_inner().finish()
    }
}

/// The merging part, which the fold takes back at its end.
struct SharedMerge(Arc<Mutex<FoldMerge>>);

/// What the home partitions have gathered that are done, and what the others have sent so far.
struct FoldMerge {
    result: Result<FoldResult, Error>,
    under_way: BTreeMap<u32, Vec<GatheredEntry>>,
    /// How many keys and buckets the others have sent, and about how many bytes.
    waiting: usize,
    waiting_bytes: u64,
}

impl FoldMerge {
    const fn new(result: FoldResult) -> Self {
        Self { result: Ok(result), under_way: BTreeMap::new(), waiting: 0, waiting_bytes: 0 }
    }

    fn forget(&mut self, home: u32) -> Vec<GatheredEntry> {
        let entries = self.under_way.remove(&home).unwrap_or_default();
        self.waiting -= found_in(&entries);
        self.waiting_bytes -= bytes_of(&entries);
        entries
    }

    fn finish(self) -> Result<FoldResult, Error> {
        let mut result = self.result?;
        result.finish();
        Ok(result)
    }
}

/// How many keys and buckets are among these. A tree and statistics have a size of their own.
fn found_in(entries: &[GatheredEntry]) -> usize {
    entries.iter().filter(|entry| matches!(entry, GatheredEntry::Key(_) | GatheredEntry::Bucket(_))).count()
}

/// About how many bytes these take.
fn bytes_of(entries: &[GatheredEntry]) -> u64 {
    entries.iter().map(|entry| entry.bytes() as u64).sum()
}

impl HomesMerge for SharedMerge {
    type Piece = GatheredPiece;
    /// About how many bytes have come.
    type Batch = u64;

    fn needs_every_home(&self) -> bool {
        true
    }

    fn take(&mut self, GatheredPiece { home, entries }: GatheredPiece) -> Result<Option<u64>, Error> {
        let mut merge = self.0.lock();
        if let Err(error) = &merge.result {
            return Err(error.clone());
        }
        merge.waiting += found_in(&entries);
        if merge.waiting > FOUND_MAX {
            return Err(Error::TooManyFound(FOUND_MAX));
        }
        let bytes = bytes_of(&entries);
        merge.waiting_bytes += bytes;
        merge.under_way.entry(home).or_default().extend(entries);
        Ok(Some(bytes))
    }

    fn home_done(&mut self, home: u32) {
        let mut merge = self.0.lock();
        let entries = merge.forget(home);
        if let Ok(result) = &mut merge.result
            && let Err(error) = result.add(entries)
        {
            merge.result = Err(error);
        }
    }

    /// What came of the home partition does not count.
    fn is_asked_again(&mut self, home: u32) -> bool {
        self.0.lock().forget(home);
        true
    }
}
