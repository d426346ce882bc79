//! The places in a map from which something can be removed.

use crate::field::Field;
use bytes::Bytes;

/// A removal with a context: where, and what.
///
/// All removals of a map wait in one list at its top, also those inside a field. Riak keeps them in
/// the field, and forgets them when the field is removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Removal {
    /// The fields from the top to the place.
    pub(crate) path: Vec<Field>,
    pub(crate) target: Target,
}

/// What is removed at the end of the path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The field with all that it holds.
    Field,
    /// That the flag is enabled.
    Flag,
    /// A member of the set.
    Member(Bytes),
}
