//! The bucket types and keys of runs of data types.

use bytes::Bytes;
use ombak_kv::BucketRegistry;
use ombak_kv::buckets::PropsError;
use ombak_types::{Bucket, PropMap};
use std::fmt;

/// How many keys each bucket type has.
const KEYS_PER_KIND: u64 = 2;
const N_VAL: u32 = 3;

/// A bucket type with a data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TypedKind {
    Counter,
    Set,
    Map,
}

impl TypedKind {
    pub(crate) const ALL: [Self; 3] = [Self::Counter, Self::Set, Self::Map];

    /// The name of the bucket type, and of its data type.
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Set => "set",
            Self::Map => "map",
        }
    }

    pub(crate) fn bucket(self) -> Bucket {
        Bucket::typed(self.name(), "b")
    }

    /// Creates the type on a node, unless the node has it already.
    pub(crate) fn create(self, registry: &BucketRegistry) -> Result<(), PropsError> {
        let name = self.name().as_bytes();
        if registry.type_status(name).is_some() {
            return Ok(());
        }
        let props = [("datatype".to_owned(), self.name().into()), ("n_val".to_owned(), N_VAL.into())];
        registry.create_type(name, &PropMap::from_iter(props))?;
        registry.activate_type(name)
    }
}

/// A key of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TypedKey {
    pub(crate) kind: TypedKind,
    pub(crate) number: u64,
}

impl TypedKey {
    /// All keys of a run.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TypedKind::ALL.into_iter().flat_map(|kind| (0..KEYS_PER_KIND).map(move |number| Self { kind, number }))
    }

    /// Whether clients delete the key now and then: one of the sets.
    pub(crate) fn is_deleted_at_times(self) -> bool {
        self.kind == TypedKind::Set && self.number == 0
    }

    pub(crate) fn bytes(self) -> Bytes {
        format!("k{}", self.number).into()
    }
}

impl fmt::Display for TypedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.number)
    }
}
