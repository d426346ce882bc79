//! Queries in the syntax of Lucene's classic parser, with what Solr 4 adds to it.
//!
//! ```text
//!  text --tokens--> words, operators, ranges --parser--> Query --print--> text again
//! ```
//!
//! What it is: the reader of a query, the tree that it becomes, and the text of a tree.
//!
//! What it is not: it knows no schema and analyses no text. The text of a [`Query::Term`] or a
//! [`Query::Phrase`] can become several terms of an index, or none; a clause without a term is left
//! out. It has no local parameters (`{!...}`), nested queries (`_query_:`) or comments.
//!
//! Invariants:
//! * The text of a tree, read again, is the same tree.
//! * Whatever the text is, reading takes time and memory in proportion to its length ([`limits`]).

pub mod limits;
mod lucene_regex;
mod operator;
mod parser;
mod print;
mod query_error;
mod token;
mod tree;
mod unescape;
mod wildcard;

#[cfg(test)]
mod cases;

pub use lucene_regex::{BadRegex, LuceneRegex};
pub use operator::Operator;
pub use parser::Reader;
pub use query_error::{QueryError, QueryProblem};
pub use tree::{Clause, Occur, Query};
pub use wildcard::{Wildcard, WildcardPiece};
