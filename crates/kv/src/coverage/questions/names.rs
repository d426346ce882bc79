//! What the questions share that list names of home partitions, in no order.
//!
//! ```text
//! piece     varint home, varint count, bytes each
//! ```

use super::content::read_count;
use crate::coverage::local_part::{Here, LocalPart, Step};
use crate::coverage::question_kind::PieceKind;
use crate::engine::WorkClass;
use crate::listing::{ENTRIES_MAX, ListWalk};
use crate::partition::Partition;
use crate::replica::{
    BadContent, ContentReader, ContentWriter, CoverageHome, CoverageItem, CoveragePiece, PieceContent,
};
use bytes::Bytes;
use ombak_runtime::Waited;
use ombak_types::Error;
use ombak_types::time::UnixMicros;
use std::collections::VecDeque;
use std::sync::Arc;

/// Over how many home partitions one step goes at most, if they have no names.
const HOMES_MAX: usize = 16;

const NUMBER: u8 = 0;

/// Pieces of names.
pub(super) const PIECE: PieceKind = PieceKind { number: NUMBER, name: "names", read };

/// Keys or buckets of a home partition.
#[derive(Debug)]
pub(crate) struct Names {
    pub(super) home: u32,
    /// Each comes once.
    pub(super) names: Vec<Bytes>,
}

impl PieceContent for Names {
    fn number(&self) -> u8 {
        NUMBER
    }

    fn write_head(&self, out: &mut dyn ContentWriter) {
        out.varint(u64::from(self.home));
    }

    fn entries(&self) -> usize {
        self.names.len()
    }

    fn bytes_of(&self, at: usize) -> usize {
        self.names[at].len()
    }

    fn write_entry(&self, at: usize, out: &mut dyn ContentWriter) {
        out.bytes(&self.names[at]);
    }
}

fn read(content: &mut dyn ContentReader) -> Result<CoveragePiece, BadContent> {
    let home = content.varint32()?;
    let mut names = Vec::new();
    for _ in 0..read_count(content)? {
        names.push(content.bytes()?);
    }
    Ok(CoveragePiece::new(Names { home, names }))
}

impl CoveragePiece {
    /// A piece of keys or buckets of a home partition. Each comes once.
    pub fn names(home: u32, names: Vec<Bytes>) -> Self {
        Self::new(Names { home, names })
    }

    /// The home partition and the names, if it is a piece of names.
    pub fn into_names(self) -> Option<(u32, Vec<Bytes>)> {
        self.into_content().map(|Names { home, names }| (home, names))
    }
}

/// What a question for names looks at.
pub(super) trait ListsNames: Send {
    /// Walks over the names of a partition.
    fn walk(&self, partition: Arc<Partition>, begun: UnixMicros) -> ListWalk;

    /// Removes the names that the question does not ask for.
    fn retain(&self, _here: &Here, _classes: &[u32], _names: &mut Vec<Bytes>) {}
}

/// The local part: it lists one home partition after the other.
pub(super) struct NamesPart<L> {
    here: Here,
    lists: L,
    /// The home partitions whose names are still to be sent.
    homes: VecDeque<CoverageHome>,
    /// The walk over the first of them, if it has begun.
    walk: Option<Box<ListWalk>>,
}

impl<L: ListsNames> NamesPart<L> {
    pub(super) fn new(here: Here, lists: L) -> Self {
        let homes = here.homes.iter().cloned().collect();
        Self { here, lists, homes, walk: None }
    }
}

impl<L: ListsNames> LocalPart for NamesPart<L> {
    fn work_class(&self) -> WorkClass {
        WorkClass::Listing
    }

    /// Goes over home partitions until there are names, or enough work was done for one step. One
    /// step goes over several home partitions, because each step waits for its turn at the threads.
    fn step(&mut self, _: &Waited<'_>) -> Result<Step, Error> {
        let (mut items, mut budget) = (Vec::new(), ENTRIES_MAX);
        for _ in 0..HOMES_MAX + usize::from(self.walk.is_some()) {
            let Some(CoverageHome { home, classes }) = self.homes.front() else { break };
            let mut walk = match self.walk.take() {
                Some(walk) => walk,
                None => Box::new(self.lists.walk(self.here.partition(*home)?, self.here.begun)),
            };
            let Some(mut names) = walk.next_batch(&mut budget)? else {
                items.push(CoverageItem::HomeDone(*home));
                self.homes.pop_front();
                continue;
            };
            self.lists.retain(&self.here, classes, &mut names);
            if !names.is_empty() {
                items.push(CoverageItem::Piece(CoveragePiece::names(*home, names)));
            }
            self.walk = Some(walk);
            break;
        }
        Ok(Step { items, is_over: self.homes.is_empty() })
    }
}
