//! Finds the kind of a coverage question in [`QUESTIONS`]. Two kinds with one number do not
//! compile.

use super::local_part::{Here, OpenedPart};
use super::question_kind::{PieceKind, QuestionKind};
use super::questions::QUESTIONS;
use crate::replica::{BadContent, ContentReader, CoveragePiece, CoverageQuestion};
use ombak_types::{StoreFailure, are_distinct_numbers, are_distinct_texts, place_of_number, place_of_text};

/// The number of the item that says that a home partition is done.
pub const HOME_DONE: u8 = 1;
/// The number of a part of an item that is too long for a message, of which more follow.
pub const ITEM_PART: u8 = 3;
/// The number of the last part of such an item.
pub const LAST_ITEM_PART: u8 = 4;

/// The numbers of items that no kind of piece may have.
const TAKEN: [u16; 3] = [HOME_DONE as u16, ITEM_PART as u16, LAST_ITEM_PART as u16];

const _: () = check::<{ QUESTIONS.len() }>(QUESTIONS);

/// Fails to compile if two kinds of questions or of pieces have one number, or one name. Several
/// kinds of questions may have one kind of pieces. `N` is the number of kinds of questions.
const fn check<const N: usize>(kinds: &[QuestionKind]) {
    let (mut numbers, mut names) = ([0; N], [""; N]);
    let (mut piece_numbers, mut piece_names) = ([0; N], [""; N]);
    let mut at = 0;
    while at < N {
        let QuestionKind { number, name, piece, .. } = &kinds[at];
        (numbers[at], names[at]) = (*number as u16, *name);
        (piece_numbers[at], piece_names[at]) = (piece.number as u16, piece.name);
        let is_taken = place_of_number(piece_numbers[at], &TAKEN) < TAKEN.len();
        assert!(!is_taken, "a kind of piece has a number that is taken");
        let by_number = place_of_number(piece_numbers[at], &piece_numbers);
        let by_name = place_of_text(piece_names[at], &piece_names);
        assert!(by_number == by_name, "two kinds of pieces have one number or one name");
        at += 1;
    }
    assert!(are_distinct_numbers(&numbers), "two kinds of questions have one number");
    assert!(are_distinct_texts(&names), "two kinds of questions have one name");
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
        std::panic::catch_unwind(|| check::<2>(&[QUESTIONS[0], other])).is_err()
    }

    #[test]
    fn what_two_kinds_must_not_share_is_refused() {
        assert!(!refuses(|_| {}), "a kind of piece may be that of several questions");
        assert!(refuses(|other| other.number = QUESTIONS[0].number));
        assert!(refuses(|other| other.name = QUESTIONS[0].name));
        assert!(refuses(|other| other.piece.name = "another piece"));
        assert!(refuses(|other| other.piece.number = 78));
        for number in TAKEN {
            let number = u8::try_from(number).unwrap();
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
