//! The coverage questions: each file has one, with its number, its encoding, its local part and its
//! merging part. (That of an index query is `crate::coverage::EntriesRun`.) A question is added
//! here, as a module and in [`QUESTIONS`], and nowhere else.
//!
//! `names` is what the questions share that list names, and `content` what several of them write.

mod buckets;
mod content;
mod feature;
mod fold;
pub(super) mod index_query;
mod keys;
mod names;

pub(crate) use buckets::list_buckets;
pub use feature::FeatureAnswersOfNodes;
pub(crate) use feature::ask_feature;
pub(crate) use fold::{fold, fold_keys};
pub(crate) use keys::list_keys;
pub(super) use names::Names;

use super::question_kind::QuestionKind;

/// All kinds of questions. Two kinds with one number do not compile (`registry`).
pub(super) const QUESTIONS: &[QuestionKind] =
    &[keys::KIND, buckets::KIND, index_query::TERMS, index_query::KEY_RANGE, fold::KIND, feature::KIND];
