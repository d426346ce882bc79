//! Finds the kind of a coverage question in [`QUESTIONS`]. Two kinds with one number do not
//! compile.

use super::local_part::{Here, OpenedPart};
use super::question_kind::{PieceKind, QuestionKind};
use super::questions::QUESTIONS;
use crate::replica::{BadContent, ContentReader, CoveragePiece, CoverageQuestion};
use ombak_types::{StoreFailure, is_same_text};

/// The number of the item that says that a home partition is done.
pub const HOME_DONE: u8 = 1;
/// The number of a part of an item that is too long for a message, of which more follow.
pub const ITEM_PART: u8 = 3;
/// The number of the last part of such an item.
pub const LAST_ITEM_PART: u8 = 4;

/// The numbers of items that no kind of piece may have.
const TAKEN: [u8; 3] = [HOME_DONE, ITEM_PART, LAST_ITEM_PART];

const _: () = check(QUESTIONS);

/// Fails to compile if two kinds have one number, or one name.
const fn check(kinds: &[QuestionKind]) {
    let mut at = 0;
    while at < kinds.len() {
        let (kind, piece) = (&kinds[at], &kinds[at].piece);
        let mut taken = 0;
        while taken < TAKEN.len() {
            assert!(piece.number != TAKEN[taken], "a kind of piece has a number that is taken");
            taken += 1;
        }
        let mut other = 0;
        while other < at {
            let (earlier, earlier_piece) = (&kinds[other], &kinds[other].piece);
            assert!(earlier.number != kind.number, "two kinds of questions have one number");
            assert!(!is_same_text(earlier.name, kind.name), "two kinds of questions have one name");
            let is_one_piece = is_same_text(earlier_piece.name, piece.name);
            assert!((earlier_piece.number == piece.number) == is_one_piece, "two kinds of pieces have one number");
            other += 1;
        }
        at += 1;
    }
}

fn kind_of(number: u8) -> Option<&'static QuestionKind> {
    QUESTIONS.iter().find(|kind| kind.number == number)
}

fn piece_kind_of(number: u8) -> Option<&'static PieceKind> {
    QUESTIONS.iter().map(|kind| &kind.piece).find(|piece| piece.number == number)
}

/// Begins the local part of a question.
pub(super) fn open(question: &CoverageQuestion, here: Here) -> OpenedPart {
    match kind_of(question.number()) {
        Some(kind) => (kind.open)(question, here),
        None => Err(StoreFailure::internal("a question is not registered").into()),
    }
}

impl CoverageQuestion {
    /// Reads a question whose kind has this number.
    pub fn read(number: u8, content: &mut dyn ContentReader) -> Result<Self, BadContent> {
        (kind_of(number).ok_or(BadContent("the question is not known"))?.read)(content)
    }

    /// What is asked for, for messages to people.
    pub fn name(&self) -> &'static str {
        kind_of(self.number()).map_or("something that is not registered", |kind| kind.name)
    }

    /// What a node says in its handshakes that knows this kind of question.
    pub fn capability(&self) -> &'static str {
        kind_of(self.number()).map_or("", |kind| kind.capability)
    }

    /// What a node says in its handshakes that knows all kinds of questions.
    pub fn capabilities() -> impl Iterator<Item = &'static str> {
        QUESTIONS.iter().map(|kind| kind.capability)
    }
}

impl CoveragePiece {
    /// Reads a piece whose kind has this number.
    pub fn read(number: u8, content: &mut dyn ContentReader) -> Result<Self, BadContent> {
        (piece_kind_of(number).ok_or(BadContent("the item is of no known kind"))?.read)(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuses(change: impl FnOnce(&mut QuestionKind)) -> bool {
        let mut other = QuestionKind { number: 77, name: "another question", ..QUESTIONS[0] };
        change(&mut other);
        std::panic::catch_unwind(|| check(&[QUESTIONS[0], other])).is_err()
    }

    #[test]
    fn what_two_kinds_must_not_share_is_refused() {
        assert!(!refuses(|_| {}), "a kind of piece may be that of several questions");
        assert!(refuses(|other| other.number = QUESTIONS[0].number));
        assert!(refuses(|other| other.name = QUESTIONS[0].name));
        assert!(refuses(|other| other.piece.name = "another piece"));
        assert!(refuses(|other| other.piece.number = 78));
        for number in TAKEN {
            let piece = PieceKind { number, name: "another piece", ..QUESTIONS[0].piece };
            assert!(refuses(|other| other.piece = piece), "{number}");
        }
    }

    /// Nodes of version 1 send and understand these numbers, so they never change.
    #[test]
    fn kinds_have_the_numbers_of_version_1() {
        let kinds = QUESTIONS.iter().filter(|kind| kind.capability == "coverage.1");
        let known: Vec<_> = kinds.map(|kind| (kind.number, kind.name, kind.piece.number)).collect();
        assert_eq!(known, [(0, "keys", 0), (1, "buckets", 0), (2, "index entries", 2), (3, "keys of a range", 2)]);
    }

    #[test]
    fn each_kind_has_a_capability() {
        assert!(CoverageQuestion::capabilities().all(|name| !name.is_empty()));
    }
}
