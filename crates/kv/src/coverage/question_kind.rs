//! A kind of coverage question: what its file registers.
//!
//! A kind has four parts. Its *number* and its *encoding* take it to another node. Its *local part*
//! ([`super::local_part::LocalPart`]) reads the stores of the node that answers. Its *merging part*
//! is a [`super::homes_run::HomesMerge`], or a run of its own, at the node that asks.

use super::local_part::{Here, OpenedPart};
use crate::replica::{BadContent, ContentReader, CoveragePiece, CoverageQuestion, QuestionContent};
use ombak_types::StoreFailure;

/// One kind of question.
#[derive(Clone, Copy)]
pub(crate) struct QuestionKind {
    /// The number of the kind between nodes. It is never used for something else later.
    pub(super) number: u8,
    /// What is asked for, for messages to people.
    pub(super) name: &'static str,
    /// What a node says in its handshakes that knows the kind. Other nodes are not asked.
    pub(super) capability: &'static str,
    /// Reads a question that another node has written.
    pub(super) read: fn(&mut dyn ContentReader) -> Result<CoverageQuestion, BadContent>,
    /// Begins the local part.
    pub(super) open: fn(&CoverageQuestion, Here) -> OpenedPart,
    /// The pieces of which an answer consists.
    pub(super) piece: PieceKind,
}

/// One kind of piece. Several kinds of question may have it.
#[derive(Clone, Copy)]
pub(crate) struct PieceKind {
    /// The number of the kind between nodes. It is never used for something else later.
    pub(super) number: u8,
    /// What a piece holds, for messages to people.
    pub(super) name: &'static str,
    /// Reads a piece that another node has written.
    pub(super) read: fn(&mut dyn ContentReader) -> Result<CoveragePiece, BadContent>,
}

/// What a question asks, with its local part.
pub(super) trait Question: QuestionContent + Sized {
    /// Begins an answer from the stores of this node.
    fn open(&self, here: Here) -> OpenedPart;
}

impl QuestionKind {
    /// The kind of the questions that `Q` asks and `read` reads.
    pub(super) const fn of<Q: Question>(
        (number, name): (u8, &'static str),
        capability: &'static str,
        read: fn(&mut dyn ContentReader) -> Result<CoverageQuestion, BadContent>,
        piece: PieceKind,
    ) -> Self {
        Self { number, name, capability, read, open: open::<Q>, piece }
    }
}

fn open<Q: Question>(question: &CoverageQuestion, here: Here) -> OpenedPart {
    match question.content::<Q>() {
        Some(content) => content.open(here),
        None => Err(StoreFailure::internal("a question has the number of another one").into()),
    }
}
