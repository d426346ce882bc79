//! Who decides changes of bucket types, properties and records of namespaces when a node is part of
//! a cluster.

use super::state::{RecordChange, Settings, Snapshot};
use crate::requests::Holdings;
use std::sync::Arc;

/// A change that a registry has checked, and the state from which it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedChange {
    /// What is to be in force afterwards. The versions of its record have no meaning.
    pub change: RecordChange,
    /// The version of the record that it replaces; `None` when there is none yet.
    pub expected: Option<u64>,
    /// The version of the bucket's type; `None` for the default type, and for changes of types.
    pub type_expected: Option<u64>,
    /// Where no object may lie when the change takes effect, because it changes which nodes have
    /// copies of a key (docs/design/replication.md §10).
    pub moves: Option<Holdings>,
    /// The registered functions that hooks name after the change and did not name before it. The
    /// change takes effect only while they are registered.
    pub functions: Vec<Arc<str>>,
    /// Whether a function is deleted only if no hook names it.
    pub unless_named: bool,
}

impl ProposedChange {
    pub(super) fn new(now: &Snapshot, settings: &Settings, change: RecordChange, unless_named: bool) -> Self {
        let mut after = now.clone();
        after.apply(settings, change.clone());
        let named = now.newly_named(&after, &change);
        let functions = named.filter(|name| now.function(name).is_some()).map(Arc::<str>::from).collect();
        let (expected, type_expected, moves) = match &change {
            RecordChange::Type(name, _) => {
                let moves = placement(now.type_map(name)) != placement(after.type_map(name));
                // A type that was never active has no objects.
                let is_active = now.records.types.get(name).is_some_and(|record| record.active);
                let expected = now.records.types.get(name).map(|record| record.version);
                (expected, None, (moves && is_active).then(|| Holdings::Type(name.clone())))
            }
            RecordChange::Bucket(bucket, _) => {
                let of = |snapshot: &Snapshot| placement(snapshot.bucket_map(bucket).as_ref());
                let expected = now.records.buckets.get(bucket).map(|record| record.version);
                let type_expected = now.records.types.get(&bucket.bucket_type).map(|record| record.version);
                (expected, type_expected, (of(now) != of(&after)).then(|| Holdings::Bucket(bucket.clone())))
            }
            RecordChange::Open(name, _) => (now.records.open.named(name).map(|record| record.version), None, None),
        };
        Self { change, expected, type_expected, moves, functions, unless_named }
    }
}

/// The properties that decide which nodes have copies of a key.
fn placement(map: Option<&ombak_types::PropMap>) -> Option<[Option<serde_json::Value>; 2]> {
    map.map(|map| ["n_val", "chash_keyfun"].map(|name| map.get(name).cloned()))
}

/// Why a change was not decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Another change was faster. This one has no effect, and is computed again.
    Overtaken,
    /// The cluster refuses the change in its present state. Holds the reason, for people.
    Refused(String),
    /// The cluster did not decide. Holds the reason, for people, which also says whether the change
    /// may still take effect.
    Failed(String),
}

/// Decides changes elsewhere: in the metadata of the cluster.
pub trait PropertyAuthority: Send + Sync + std::fmt::Debug {
    /// Decides a change, and returns after the registries of all members that can be reached have
    /// adopted it, this one among them. So a request that begins afterwards finds it, whichever of
    /// them it reaches. Blocks: not for network threads.
    fn decide(&self, change: ProposedChange) -> Result<(), Undecided>;

    /// Lets the registry adopt what any member that can be reached has decided. Blocks: not for
    /// network threads.
    fn catch_up(&self);
}
