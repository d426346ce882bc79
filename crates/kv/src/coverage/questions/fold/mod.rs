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

mod handed_over;
mod layout;
mod run;

use self::layout::{PIECE_NUMBER, read_piece, read_range, read_wants, write_range, write_wants};
use crate::coverage::local_part::{Here, LocalPart, OpenedPart, Step};
use crate::coverage::question_kind::{PieceKind, Question, QuestionKind};
use crate::engine::WorkClass;
use crate::folds::{FoldRange, FoldWalk, FoldWants, GatheredEntry, gather_kept, kept_class};
use crate::replica::{
    BadContent, ContentReader, ContentWriter, CoverageHome, CoverageItem, CoveragePiece, CoverageQuestion,
    QuestionContent,
};
use ombak_runtime::Waited;
use ombak_types::Error;
pub(crate) use run::{fold, fold_keys};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a node says that answers folds.
const CAPABILITY: &str = "fold.1";

const NUMBER: u8 = 4;

/// About how many index entries one step reads.
const STEP_ENTRIES: usize = 1_000;
/// Over how many home partitions one step goes at most, if they have no objects.
const HOMES_MAX: usize = 16;

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

    fn step(&mut self, _: &Waited<'_>) -> Result<Step, Error> {
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
