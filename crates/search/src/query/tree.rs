//! The tree that a query becomes.

use super::lucene_regex::LuceneRegex;
use super::wildcard::Wildcard;
use std::ops::Bound;

/// A query. Its texts have no escapes any more, and are not analysed.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// `*:*`: all documents.
    All,
    /// `field:*`: documents that have a value in the field.
    Exists {
        /// The field.
        field: String,
    },
    /// `field:text`
    Term {
        /// The field.
        field: String,
        /// The word; never empty.
        text: String,
    },
    /// `field:"text"~slop`
    Phrase {
        /// The field.
        field: String,
        /// What stands between the quotes.
        text: String,
        /// How many positions the words may be moved, together.
        slop: u32,
    },
    /// `field:text*`
    Prefix {
        /// The field.
        field: String,
        /// The beginning of terms; never empty.
        text: String,
    },
    /// `field:t?x*t`
    Wildcard {
        /// The field.
        field: String,
        /// The form of a term.
        pattern: Wildcard,
    },
    /// `field:text~edits`
    Fuzzy {
        /// The field.
        field: String,
        /// The word; never empty.
        text: String,
        /// How many characters may be different: 0, 1 or 2.
        edits: u8,
    },
    /// `field:/regex/`
    Regex {
        /// The field.
        field: String,
        /// A regular expression for a whole term.
        regex: LuceneRegex,
    },
    /// `field:[from TO to]`
    Range {
        /// The field.
        field: String,
        /// Where the range begins.
        from: Bound<String>,
        /// Where the range ends.
        to: Bound<String>,
    },
    /// Several clauses, or one that is required or prohibited.
    Group(Vec<Clause>),
    /// `query^factor`; the query is none with a factor itself.
    Boosted {
        /// The query.
        query: Box<Query>,
        /// What its score is multiplied by; never 1.
        factor: f32,
    },
}

/// A part of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// What it means for the group.
    pub occur: Occur,
    /// What it finds.
    pub query: Query,
    /// What the AND or OR before it makes of the clause before it. That clause has it already. If
    /// it has only words that are left out, the next one before it gets it.
    pub before: Option<Occur>,
    /// Whether `+`, `-` or NOT stands before it. The first clause of a group without one is the
    /// group itself if the others have only words that are left out.
    pub has_sign: bool,
}

/// What a clause means for its group. A document is in a group if it is in all required clauses and
/// in no prohibited one, and in at least one optional clause if none is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occur {
    /// The clause only adds to the score, if another is required.
    Optional,
    /// `+`
    Required,
    /// `-`
    Prohibited,
}

impl Query {
    /// The query with a factor, which replaces the factor that it has, as in Lucene.
    #[must_use]
    pub fn boosted(self, factor: f32) -> Self {
        let plain = if let Self::Boosted { query, .. } = self { *query } else { self };
        if factor == 1.0 { plain } else { Self::Boosted { query: Box::new(plain), factor } }
    }
}
