//! A query whose fields, values and terms are known.

use super::matcher::Matcher;
use tantivy::Term;
use tantivy::query::Occur;

/// A query whose fields, values and terms are known.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// All documents.
    All,
    /// No document.
    Nothing,
    /// Documents with a term.
    Term(Term),
    /// The same, all equally good.
    Exists(Term),
    /// Documents with words near each other.
    Phrase(PhrasePlan),
    /// Documents with one of several terms.
    Terms(TermsPlan),
    /// Documents with a number in a range; both bounds are in it.
    Numbers {
        /// The name of the column.
        column: String,
        /// The least number.
        low: i64,
        /// The largest number.
        high: i64,
    },
    /// Several clauses; never empty.
    Group(Vec<(Occur, Plan)>),
    /// A plan with a factor.
    Boosted(Box<Plan>, f32),
}

/// Words near each other.
#[derive(Clone, Debug)]
pub(crate) struct PhrasePlan {
    /// The positions of the phrase, and the terms that can stand at each. There are at least two.
    pub(crate) places: Vec<(u32, Vec<Term>)>,
    /// How many positions the words may be moved.
    pub(crate) slop: u32,
}

/// Terms of a field.
#[derive(Clone, Debug)]
pub(crate) struct TermsPlan {
    /// Whether they are words of texts.
    pub(crate) is_words: bool,
    /// What begins the terms of the field.
    pub(crate) prefix: String,
    /// Which of them.
    pub(crate) matcher: Matcher,
    /// The name of the column with the same terms, if there is one.
    pub(crate) column: Option<String>,
}
