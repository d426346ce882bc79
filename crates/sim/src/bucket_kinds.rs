//! The bucket types of a run.

use ombak_kv::BucketRegistry;
use ombak_kv::buckets::PropsError;
use ombak_types::{Bucket, PropMap};

/// A bucket type, as far as its properties matter to the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BucketKind {
    /// Its name.
    pub name: &'static str,
    /// The number of replicas.
    pub n: u32,
    /// What becomes of concurrent values.
    pub merging: Merging,
}

/// What becomes of concurrent values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Merging {
    /// All of them are kept.
    Siblings,
    /// One of them is kept, and a later write replaces it.
    Single,
    /// The one with the latest time is kept.
    LastWriteWins,
    /// Values have no clock and are written once.
    WriteOnce,
}

impl BucketKind {
    /// All bucket types of a run.
    pub const ALL: [Self; 7] = [
        Self { name: "n1", n: 1, merging: Merging::Siblings },
        Self { name: "n2", n: 2, merging: Merging::Siblings },
        Self { name: "n3", n: 3, merging: Merging::Siblings },
        Self { name: "n5", n: 5, merging: Merging::Siblings },
        Self { name: "single", n: 3, merging: Merging::Single },
        Self { name: "lww", n: 3, merging: Merging::LastWriteWins },
        Self { name: "once", n: 3, merging: Merging::WriteOnce },
    ];

    /// The bucket of the type that runs use.
    pub fn bucket(&self) -> Bucket {
        Bucket::typed(self.name, "b")
    }

    /// Creates the type on a node, unless the node has it already.
    pub(crate) fn create(&self, registry: &BucketRegistry) -> Result<(), PropsError> {
        if registry.type_status(self.name.as_bytes()).is_some() {
            return Ok(());
        }
        let mut props = PropMap::new();
        props.insert("n_val".into(), self.n.into());
        match self.merging {
            Merging::Siblings => props.insert("allow_mult".into(), true.into()),
            Merging::Single => props.insert("allow_mult".into(), false.into()),
            Merging::LastWriteWins => {
                props.insert("allow_mult".into(), false.into());
                props.insert("dvv_enabled".into(), false.into());
                props.insert("last_write_wins".into(), true.into())
            }
            Merging::WriteOnce => props.insert("write_once".into(), true.into()),
        };
        registry.create_type(self.name.as_bytes(), &props)?;
        registry.activate_type(self.name.as_bytes())
    }
}
