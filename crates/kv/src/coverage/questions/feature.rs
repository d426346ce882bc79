//! A question of a feature, which the feature answers from what it keeps beside the stores.
//!
//! ```text
//! question  bytes name of the feature, bytes content
//! piece     varint count, varint home each, varint count, bytes each
//! ```
//!
//! A node answers for several home partitions together. The bytes of an answer are cut into
//! entries, so that no message becomes too long. An answer counts when all its home partitions are
//! done. If a node fails between two of them, the question fails as a whole, because the answer
//! cannot be divided.

use super::content::{owned, read_count};
use crate::coverage::homes_run::{HomesMerge, HomesRun};
use crate::coverage::local_part::{Here, LocalPart, OpenedPart, Step};
use crate::coverage::planner::Planner;
use crate::coverage::question_kind::{PieceKind, Question, QuestionKind};
use crate::engine::WorkClass;
use crate::hooks::{AskedHome, FeatureAnswer, FeatureAnswers, FeatureQuestion};
use crate::replica::{
    BadContent, ContentReader, ContentWriter, CoverageItem, CoveragePiece, CoverageQuestion, PieceContent,
    QuestionContent,
};
use crate::requests::MemoryReservation;
use bytes::Bytes;
use ombak_runtime::Waited;
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a node says that answers such questions. Whether it has the feature shows when it is asked.
const CAPABILITY: &str = "feature.1";

const NUMBER: u8 = 5;
const PIECE_NUMBER: u8 = 6;

/// The bytes of an entry.
const ENTRY_BYTES: usize = 32 << 10;

const PIECE: PieceKind = PieceKind { number: PIECE_NUMBER, name: "the answer of a feature", read: read_piece };

/// The question of a feature.
pub(in crate::coverage) const KIND: QuestionKind =
    QuestionKind::of::<OfFeature>((NUMBER, "question of a feature"), CAPABILITY, read_question, PIECE);

#[derive(Clone, Debug)]
struct OfFeature {
    name: Bytes,
    content: Bytes,
}

impl CoverageQuestion {
    /// Asks a feature.
    pub fn feature(name: Bytes, content: Bytes) -> Self {
        Self::new(OfFeature { name, content })
    }
}

impl QuestionContent for OfFeature {
    fn number(&self) -> u8 {
        NUMBER
    }

    fn write(&self, out: &mut dyn ContentWriter) {
        out.bytes(&self.name);
        out.bytes(&self.content);
    }
}

fn read_question(content: &mut dyn ContentReader) -> Result<CoverageQuestion, BadContent> {
    Ok(CoverageQuestion::feature(owned(&content.bytes()?), owned(&content.bytes()?)))
}

#[derive(Debug)]
struct AnswerPiece {
    homes: Vec<u32>,
    entries: Vec<Bytes>,
}

impl CoveragePiece {
    /// A piece of the answer of a feature for these home partitions. It has one entry at least.
    pub fn of_feature(homes: Vec<u32>, entries: Vec<Bytes>) -> Self {
        Self::new(AnswerPiece { homes, entries })
    }
}

impl PieceContent for AnswerPiece {
    fn number(&self) -> u8 {
        PIECE_NUMBER
    }

    fn write_head(&self, out: &mut dyn ContentWriter) {
        out.varint(self.homes.len() as u64);
        self.homes.iter().for_each(|home| out.varint(u64::from(*home)));
    }

    fn entries(&self) -> usize {
        self.entries.len()
    }

    fn bytes_of(&self, at: usize) -> usize {
        self.entries[at].len()
    }

    fn write_entry(&self, at: usize, out: &mut dyn ContentWriter) {
        out.bytes(&self.entries[at]);
    }
}

fn read_piece(content: &mut dyn ContentReader) -> Result<CoveragePiece, BadContent> {
    let homes = (0..read_count(content)?).map(|_| content.varint32()).collect::<Result<_, _>>()?;
    let entries = (0..read_count(content)?).map(|_| Ok(owned(&content.bytes()?))).collect::<Result<_, _>>()?;
    Ok(CoveragePiece::of_feature(homes, entries))
}

impl Question for OfFeature {
    fn open(&self, here: Here) -> OpenedPart {
        let features = &here.engine.config.hooks.features_asked;
        let feature = features.iter().find(|feature| feature.name().as_bytes() == &self.name[..]).cloned();
        let unknown = || StoreFailure::new(StoreFailureKind::Closed, "the feature is not switched on at this node");
        let feature = feature.ok_or_else(unknown)?;
        let homes = here.homes.iter().map(|home| home.home).collect();
        Ok(Box::new(FeaturePart { feature, content: self.content.clone(), homes, here }))
    }
}

/// The local part: each step answers for some home partitions.
struct FeaturePart {
    feature: Arc<dyn FeatureAnswers>,
    content: Bytes,
    /// The home partitions that are not answered for yet.
    homes: Vec<u32>,
    here: Here,
}

impl FeaturePart {
    fn asked(&self) -> Vec<AskedHome> {
        let engine = &self.here.engine;
        let asked = |home: &u32| {
            let changes = engine.transfers.classes.changes_of(*home);
            AskedHome {
                home: *home,
                full_since: engine.coverage.full_since(*home, changes, engine.config.runtime.now()),
            }
        };
        self.homes.iter().map(asked).collect()
    }
}

impl LocalPart for FeaturePart {
    fn work_class(&self) -> WorkClass {
        WorkClass::Feature
    }

    fn step(&mut self, waited: &Waited<'_>) -> Result<Step, Error> {
        let asked = self.asked();
        let question = FeatureQuestion { content: &self.content, homes: &asked, waited };
        let FeatureAnswer { homes, bytes } = self.feature.answer(&question)?;
        let before = self.homes.len();
        self.homes.retain(|home| !homes.contains(home));
        if self.homes.len() + homes.len() != before || homes.is_empty() {
            return Err(StoreFailure::internal("a feature answers another question").into());
        }
        let bytes = Bytes::from(bytes);
        let mut entries = Vec::with_capacity(bytes.len().div_ceil(ENTRY_BYTES).max(1));
        let mut at = 0;
        while entries.is_empty() || at < bytes.len() {
            let end = bytes.len().min(at + ENTRY_BYTES);
            entries.push(bytes.slice(at..end));
            at = end;
        }
        let done: Vec<_> = homes.iter().map(|home| CoverageItem::HomeDone(*home)).collect();
        let mut items = vec![CoverageItem::Piece(CoveragePiece::of_feature(homes, entries))];
        items.extend(done);
        Ok(Step { items, is_over: self.homes.is_empty() })
    }
}

/// The answers of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureAnswersOfNodes {
    /// One for each node, or several. Each home partition is in one of them, or missing.
    pub answers: Vec<FeatureAnswer>,
    /// The home partitions for which no node answered.
    pub missing: Vec<u32>,
}

/// Asks a feature of all nodes, for these home partitions. What they send is reserved as it comes.
pub(crate) async fn ask_feature(
    planner: Planner,
    (name, content): (&'static str, Bytes),
    (n_val, homes): (u32, Vec<u32>),
    room: &mut dyn MemoryReservation,
) -> Result<FeatureAnswersOfNodes, Error> {
    let merge = Arc::new(Mutex::new(AnswersMerge::default()));
    let question = CoverageQuestion::feature(Bytes::from_static(name.as_bytes()), content);
    let shared = Box::new(SharedMerge(merge.clone()));
    let mut run = HomesRun::of_homes(planner, question, (&[n_val], &homes), shared)?;
    let mut received_bytes = 0;
    while let Some(bytes) = run.next_batch().await? {
        received_bytes += bytes;
        room.reserve(received_bytes).await?;
    }
    drop(run);
    let merge = Arc::into_inner(merge).ok_or_else(|| StoreFailure::internal("a question goes on after its end"))?;
    let answers = merge.into_inner().answers;
    let missing = homes.into_iter().filter(|home| !answers.iter().any(|answer| answer.homes.contains(home)));
    let missing = missing.collect();
    Ok(FeatureAnswersOfNodes { missing, answers })
}

struct SharedMerge(Arc<Mutex<AnswersMerge>>);

/// The answers that are complete, and those that are under way.
#[derive(Default)]
struct AnswersMerge {
    answers: Vec<FeatureAnswer>,
    /// By the first of their home partitions.
    under_way: BTreeMap<u32, UnderWay>,
}

struct UnderWay {
    answer: FeatureAnswer,
    /// How many of its home partitions are done.
    homes_done: usize,
}

impl AnswersMerge {
    fn of(&self, home: u32) -> Option<u32> {
        let mut with = self.under_way.iter().filter(|(_, under_way)| under_way.answer.homes.contains(&home));
        with.next().map(|(first, _)| *first)
    }
}

impl HomesMerge for SharedMerge {
    type Piece = AnswerPiece;
    /// How many bytes have come.
    type Batch = u64;

    fn needs_every_home(&self) -> bool {
        false
    }

    fn take(&mut self, AnswerPiece { homes, entries }: AnswerPiece) -> Result<Option<u64>, Error> {
        let mut merge = self.0.lock();
        let Some(first) = homes.first().copied() else {
            return Err(StoreFailure::internal("an answer is about nothing").into());
        };
        let new = || UnderWay { answer: FeatureAnswer { homes: homes.clone(), bytes: Vec::new() }, homes_done: 0 };
        let under_way = merge.under_way.entry(first).or_insert_with(new);
        if under_way.answer.homes != homes {
            return Err(StoreFailure::internal("two answers are about one home partition").into());
        }
        let bytes: usize = entries.iter().map(Bytes::len).sum();
        entries.iter().for_each(|entry| under_way.answer.bytes.extend_from_slice(entry));
        Ok(Some(bytes as u64))
    }

    fn home_done(&mut self, home: u32) {
        let mut merge = self.0.lock();
        let Some(first) = merge.of(home) else { return };
        let Some(under_way) = merge.under_way.get_mut(&first) else { return };
        under_way.homes_done += 1;
        if under_way.homes_done == under_way.answer.homes.len()
            && let Some(UnderWay { answer, .. }) = merge.under_way.remove(&first)
        {
            merge.answers.push(answer);
        }
    }

    /// An answer of which nothing was done yet does not count. One of which a part was done cannot
    /// be divided.
    fn is_asked_again(&mut self, home: u32) -> bool {
        let mut merge = self.0.lock();
        let Some(first) = merge.of(home) else { return true };
        merge.under_way.remove(&first).is_none_or(|under_way| under_way.homes_done == 0)
    }
}
