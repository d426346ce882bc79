//! Which coordinator serves a bucket, and what its classes contain.
//!
//! What it is: the one place that reads from the properties of a bucket how its requests are
//! coordinated ([`Route`], [`WriteKind`], [`asks_majority`]), and which of its keys the work on
//! copies has to do with ([`class_of_key`]). Gets, puts and deletes ask for the route. Transfers,
//! reaping and the sums of ranges ask for the class. A kind of bucket with a coordinator of its
//! own, such as strongly consistent buckets, is added here.
//!
//! What it is not: it chooses no node (`engine/coordinators.rs`), and it knows nothing of the kinds
//! of values (`hooks`), which are independent of the route. Everything here is a pure function.

mod class;
mod route;
mod write_kind;

pub(crate) use class::{class_of_bucket, tree_class_of_key};
pub use class::{class_of_key, is_of_class};
pub(crate) use route::{Route, asks_majority};
pub(crate) use write_kind::WriteKind;
