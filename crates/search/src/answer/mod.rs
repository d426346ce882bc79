//! The answer of a search, in the forms of Solr 4.
//!
//! ```text
//!  SearchAnswer --AnswerWriter--> JSON or XML, piece by piece
//!  Document -----pairs_of-------> pairs of names and texts, for Protocol Buffers
//!  ErrorAnswer ---to_text-------> JSON or XML
//! ```
//!
//! What it is: the texts of answers. They have the parts, the order and the numbers of Solr 4.10
//! without `indent`, as its clients read them.
//!
//! What it is not: it finds nothing and cuts nothing out. A document has the fields that are told.
//!
//! Invariants:
//! * An answer is JSON or XML whatever its texts are. A character that XML does not have is written
//!   as `#0;`, with its number, as in Solr: that cannot be told from a text that is so.
//! * [`AnswerWriter::write`] passes the bytes that it is asked for by one piece at most: a
//!   document, the header, some counts of a facet, or the ranges of one.

mod answer_writer;
#[cfg(test)]
mod cases;
mod document;
mod error_answer;
mod form;
mod json_form;
mod numbers;
mod pairs;
mod plain;
mod search_answer;
mod xml_form;

pub use answer_writer::AnswerWriter;
pub use document::{Document, FieldValues};
pub use error_answer::ErrorAnswer;
pub use pairs::pairs_of;
pub use plain::text_of;
pub use search_answer::{FacetCounts, FieldCounts, Header, RangeCounts, SearchAnswer};
