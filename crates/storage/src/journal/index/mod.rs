//! The interface that the journal needs from the index over it: for each key, where its current
//! version lies.
//!
//! * [`KeyIndex`] is what every index does.
//! * [`OrderedIndex`] visits keys and index entries in order.
//! * [`PersistentIndex`] has its entries on disk, up to a checkpoint.
//!
//! The journal decides what is written and in which order (`seq`). It calls the index under the
//! writer's lock, except for relocations by merges, which the index must make atomic by itself.

mod entry;
mod key_index;
mod ordered_index;
mod persistent_index;
mod tables;

pub(super) use entry::head_units;
pub(crate) use entry::{
    Compacted, Entry, HEAD_UNITS_MANY, IndexAnswer, IndexSizes, Loaded, Position, SweepCursor, Version,
};
pub(crate) use key_index::KeyIndex;
pub(crate) use ordered_index::{OrderedIndex, ReadHead, TermsSource};
pub(crate) use persistent_index::PersistentIndex;
pub(crate) use tables::{IndexDamage, IndexTable, IndexTables};
