//! Asks all nodes, and makes one answer.
//!
//! What it is: [`Query`] carries out a query. It asks each home partition of a fresh replica. If
//! there is none for a second, it asks once more and takes what is there. [`Prepared`] is what a
//! request means in a schema.
//!
//! What it is not: it reads no index.
//!
//! Invariant: an answer has each home partition once, or says that it is partial.

mod error;
mod held_answers;
mod prepared;
mod query;

pub use error::SearchError;
pub(crate) use prepared::Prepared;
pub use query::Found;
pub(crate) use query::Query;
