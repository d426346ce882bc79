//! Text becomes terms, as the analyzers of a schema say.
//!
//! ```text
//!  text --character filters--> text --splitter--> words --filters--> terms with positions
//! ```
//!
//! What it is: [`Chain`], an analyzer that runs, and [`analysis_notes`], what in a schema has
//! another effect than in Solr.
//!
//! What it is not: a schema is read elsewhere (`ombak_search::schema`). No file is read: the lists
//! that Solr has in files are those below, or empty.
//!
//! The languages of `_yz_default`. "Snowball" is the stemmer of the Snowball project, "list" is its
//! list of stop words.
//!
//! | suffixes | stemmer | stop words |
//! | --- | --- | --- |
//! | da nl fi fr de hu it no pt ru es sv | Snowball (Solr has lighter ones for fr de hu it pt es) | list |
//! | en | Porter | Lucene's 33 words |
//! | ar ca cz el eu ga hi hy id ro tr | Snowball (Solr has others for ar cz el hi id) | none |
//! | fa | none, normalised as in Solr | none |
//! | bg ckb gl lv | none | none |
//! | cjk | pairs of characters, as in Solr | none |
//! | ja | characters and pairs; a word of a query is a phrase of pairs | none |
//! | th | the same for Thai characters | none |
//!
//! Invariants:
//! * The same chain makes the same terms of the same text, so that documents and queries meet.
//! * Positions of terms never go back. A word that a filter takes out leaves its position free.
//! * A component that a schema can name does what it does in Solr, or is in [`analysis_notes`].

mod bigrams;
mod chain;
mod char_filters;
mod compile;
mod filters;
mod folding;
mod grams;
mod normalizers;
mod notes;
mod splitters;
mod standard;
mod stems;
mod stop_words;
mod word_delimiter;

pub use chain::{Chain, Token};
pub use notes::analysis_notes;
#[cfg(test)]
pub(crate) use notes::has_effect;
