//! Where other features attach to the engine: anti-entropy, data types, search, replication between
//! clusters and commit hooks.
//!
//! What it is: three traits, and the list of what a node has of each. The engine calls them; it
//! knows none of the features.
//!
//! What it is not: it has no order of priorities. Hooks of one trait are called in the order of the
//! list.

use ombak_types::{Bucket, BucketProps, Dot, Error, Object, Sibling};
use std::fmt;
use std::sync::Arc;

/// A version that a store has just stored or removed.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The home partition.
    pub partition: u32,
    /// The storage key.
    pub key: &'a [u8],
    /// The version that was there, possibly without its values.
    pub old: Option<&'a Object>,
    /// The version that is there now; `None` after a removal.
    pub new: Option<&'a Object>,
    /// The place of the change in the store's append order.
    pub seq: u64,
}

/// Learns of each change of a key, whoever made it: a client, another node, or the reaper.
pub trait WriteObserver: Send + Sync {
    /// Called under the key's lock, after the write call has returned. So the changes of one key
    /// come in their order, and no change is missed. It must be quick, and must not call the
    /// engine.
    fn changed(&self, change: &Change<'_>);
}

/// Sees each put and delete of a client before it is coordinated.
pub trait PutFilter: Send + Sync {
    /// Changes the object, or refuses the put. Called on the node that coordinates, and again when
    /// a put that has not begun is tried again.
    fn before_put(&self, bucket: &Bucket, key: &[u8], props: &BucketProps, object: &mut Object) -> Result<(), Error>;
}

/// A kind of values that are not replaced but changed by operations, and that merge into one.
pub trait ValueKind: Send + Sync + fmt::Debug {
    /// The number of the kind in messages between nodes; not 0. It never changes.
    fn number(&self) -> u16;

    /// Whether the values of a bucket are of this kind.
    fn serves(&self, props: &BucketProps) -> bool;

    /// Applies the operation that a put carries to the local value, under the key's lock. The
    /// result is the value after the new event. Without a local value it is the first one.
    fn apply(&self, local: Option<&Sibling>, operation: &Sibling, event: &Dot) -> Result<Sibling, Error>;

    /// Merges two values into one. Every order of merges must give the same value.
    fn merge(&self, one: Sibling, other: Sibling) -> Sibling;
}

/// The hooks of a node.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Who learns of changes.
    pub observers: Vec<Arc<dyn WriteObserver>>,
    /// Who sees puts first.
    pub filters: Vec<Arc<dyn PutFilter>>,
    /// The kinds of values that are not plain.
    pub kinds: Vec<Arc<dyn ValueKind>>,
}

impl Hooks {
    /// The kind of a bucket's values; `None` for plain values.
    pub(crate) fn kind_of(&self, props: &BucketProps) -> Option<&Arc<dyn ValueKind>> {
        self.kinds.iter().find(|kind| kind.serves(props))
    }
}

/// Merges the values of an object into one. Tombstones stay beside it.
pub(crate) fn merge_values(kind: &dyn ValueKind, object: &mut Object) {
    if object.siblings.len() < 2 {
        return;
    }
    let (gone, values): (Vec<_>, Vec<_>) = object.siblings.drain(..).partition(|sibling| sibling.meta.deleted);
    object.siblings.extend(values.into_iter().reduce(|one, other| kind.merge(one, other)));
    object.siblings.extend(gone);
}
