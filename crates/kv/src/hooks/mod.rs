//! Where other features attach to the engine: anti-entropy, data types, search, replication between
//! clusters and commit hooks.
//!
//! What it is: traits, and the list of what a node has of each. The engine calls them; it
//! knows none of the features.
//!
//! What it is not: it has no order of priorities. Hooks of one trait are called in the order of the
//! list.

mod change_consumer;
mod feature_answers;
mod followed_store;

pub use change_consumer::{Anew, ChangeConsumer, ConsumerSource, FeedProgress};
pub use feature_answers::{AskedHome, FeatureAnswer, FeatureAnswers, FeatureQuestion};
pub use followed_store::{FollowedStore, PresentVersion};

use crate::buckets::Namespaces;
use crate::open_error::OpenError;
use bytes::Bytes;
use ombak_runtime::BoxFuture;
use ombak_stats::{Feature, KindCounts};
use ombak_storage::Origin;
use ombak_types::props::Hook;
use ombak_types::{Bucket, BucketProps, Dot, Error, Object, Sibling};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// A version that a store has just stored or removed.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The home partition.
    pub partition: u32,
    /// The storage key.
    pub key: &'a [u8],
    /// The version that was there, possibly without its values.
    pub old: Option<&'a Object>,
    /// The version that is there now; `None` after a removal. A value that was added to is empty.
    pub new: Option<&'a Object>,
    /// The place of the change in the store's append order.
    pub seq: u64,
    /// Where it came from.
    pub origin: Origin,
}

/// Learns of each change of a key, whoever made it: a client, another node, or the reaper. What
/// must never drift from the stores, such as sums over ranges, is an observer. What may lag behind
/// is a [`ChangeConsumer`].
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

/// A key that is written, for commit hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookedKey {
    /// The bucket of the key.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
}

/// Runs the commit hooks that the properties of buckets name. A delete is the put of a tombstone.
pub trait CommitHooks: Send + Sync {
    /// Runs pre-commit hooks in their order, before a put begins. Each gets the object that the one
    /// before gave. Gives the object to put, or refuses the put. Called on the node that
    /// coordinates, and again when a put that has not begun is tried again. `until` is when the
    /// client stops waiting.
    fn pre_commit(
        &self,
        at: HookedKey,
        hooks: Vec<Hook>,
        object: Object,
        until: Option<Instant>,
    ) -> BoxFuture<'_, Result<Object, Error>>;

    /// Queues post-commit hooks of a put that has counted, and returns at once. `failed` is called
    /// for each hook that could not be run or that failed.
    fn post_commit(&self, at: HookedKey, hooks: Vec<Hook>, object: Object, failed: Arc<dyn Fn() + Send + Sync>);

    /// What it counts, for the statistics of the node.
    fn feature(&self) -> Option<Arc<dyn Feature>> {
        None
    }
}

/// What an operation does to a large value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It adds bytes behind the value.
    Added {
        /// The bytes. Behind any value that has the operations of the one here, they mean the same.
        bytes: Bytes,
        /// The summary afterwards.
        summary: Bytes,
    },
    /// The kind has to see the value first.
    NeedsValue,
    /// The operation must be applied to the whole value.
    Whole,
}

/// A kind of values that are not replaced but changed by operations, and that merge into one.
///
/// A value may have a form of its own in stores and between nodes. Then its metadata has the number
/// of the kind. Values of other kinds, and plain ones, can lie beside it. Such siblings stay as
/// they are.
pub trait ValueKind: Send + Sync + fmt::Debug {
    /// The number of the kind in messages between nodes; not 0. It never changes.
    fn number(&self) -> u16;

    /// Whether the values of a bucket are of this kind.
    fn serves(&self, props: &BucketProps) -> bool;

    /// The operation that a plain put of a value is, in a bucket that the kind serves. `None`: the
    /// value stays a plain one.
    fn operation_of(&self, props: &BucketProps, value: &Sibling) -> Option<Bytes>;

    /// Whether none of these values is one that an operation would change, so that it begins a new
    /// one. A new value gets an actor that has no event on the key: what an older value of the key
    /// has seen of an actor says nothing about the new one (docs/design/datatypes.md).
    fn begins(&self, props: &BucketProps, values: &[Sibling]) -> bool;

    /// Applies the operation that a put carries, under the key's lock. Takes from `values` what is
    /// changed, all of it if several merge, and returns the value after the new event. The caller
    /// sets the metadata that each put has: tag, times, event. After an error the values are of no
    /// use.
    fn apply(
        &self,
        props: &BucketProps,
        values: &mut Vec<Sibling>,
        operation: &Sibling,
        event: &Dot,
    ) -> Result<Sibling, Error>;

    /// What an operation does to a value with a summary, which the kind has given to it because it
    /// is large ([`KindState::summary`](ombak_types::KindState)). The value is given after
    /// [`Growth::NeedsValue`].
    fn grow(
        &self,
        _props: &BucketProps,
        _summary: &Bytes,
        _value: Option<&Sibling>,
        _operation: &Sibling,
        _event: &Dot,
    ) -> Result<Growth, Error> {
        Ok(Growth::Whole)
    }

    /// The summary of a value after bytes that [`grow`](Self::grow) has given elsewhere. `None`:
    /// they cannot be added to this value, which is to be merged with the whole other one.
    fn grown(&self, _summary: &Bytes, _added: &Bytes) -> Option<Bytes> {
        None
    }

    /// Whether so much was added to a value that it is to be written anew as a whole.
    fn must_fold(&self, _summary: &Bytes) -> bool {
        false
    }

    /// The value in the form without additions, with its summary.
    fn fold(&self, value: Sibling) -> Result<Sibling, Error> {
        Ok(value)
    }

    /// Merges the values that merge; the others stay beside the result. Every order of merges must
    /// give the same values.
    fn merge(&self, values: Vec<Sibling>) -> Vec<Sibling>;

    /// What a client of the object interface sees of a value.
    fn show(&self, value: Sibling) -> Result<Sibling, Error>;

    /// Where requests for the values of a bucket are counted: operations, and reads that want
    /// values as they are stored. `None`: the bucket has no values of this kind, or nobody counts
    /// them.
    fn counts(&self, _props: &BucketProps) -> Option<Arc<KindCounts>> {
        None
    }

    /// What it counts, for the statistics of the node.
    fn feature(&self) -> Option<Arc<dyn Feature>> {
        None
    }
}

/// Knows whether values of kinds may be written.
pub trait KindGate: Send + Sync {
    /// The error says which nodes could not read such values. It is asked for each operation.
    fn may_write(&self) -> Result<(), Error>;
}

/// Knows whether tombstones may lose their time before they are removed.
pub trait ReapingGate: Send + Sync {
    /// Whether every member takes part (docs/design/replication.md §6); `None` as long as that is
    /// not known of some member, and all others do. It is asked every 100 ms.
    fn may_take_times(&self) -> Option<bool>;
}

/// The hooks of a node.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Who learns of changes.
    pub observers: Vec<Arc<dyn WriteObserver>>,
    /// Who follows the change feed of each partition.
    pub consumers: Vec<Arc<dyn ChangeConsumer>>,
    /// Who has consumers that come and go.
    pub consumer_sources: Vec<Arc<dyn ConsumerSource>>,
    /// Who sees puts first.
    pub filters: Vec<Arc<dyn PutFilter>>,
    /// The kinds of values that are not plain.
    pub kinds: Vec<Arc<dyn ValueKind>>,
    /// Who is asked before a value of a kind is written; `None`: nobody.
    pub kind_gate: Option<Arc<dyn KindGate>>,
    /// Who is asked before a tombstone loses its time; `None`: nobody.
    pub reaping_gate: Option<Arc<dyn ReapingGate>>,
    /// Who runs the commit hooks of buckets. Without it, a put in a bucket with pre-commit hooks is
    /// refused.
    pub commit: Option<Arc<dyn CommitHooks>>,
    /// Who answers questions of features that all nodes answer together.
    pub features_asked: Vec<Arc<dyn FeatureAnswers>>,
    /// The namespaces of records in the metadata. Each learns of its records before any request.
    pub namespaces: Namespaces,
}

impl Hooks {
    /// What features count, for the statistics of the node.
    pub(crate) fn features(&self) -> impl Iterator<Item = Arc<dyn Feature>> {
        let of_kinds = self.kinds.iter().filter_map(|kind| kind.feature());
        of_kinds.chain(self.commit.iter().filter_map(|commit| commit.feature()))
    }

    /// Whether somebody follows the changes of the stores.
    pub(crate) fn follows_changes(&self) -> bool {
        !self.consumers.is_empty() || !self.consumer_sources.is_empty()
    }

    /// Checks that each consumer has a name of its own, under which it can keep its place.
    pub(crate) fn check_consumers(&self) -> Result<(), OpenError> {
        let mut names = BTreeSet::new();
        for name in self.consumers.iter().map(|consumer| consumer.name()) {
            let refused = |why| Err(OpenError::ConsumerName { name: name.to_owned(), why });
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') {
                return refused("it has other characters than lower-case letters and hyphens, or none");
            }
            if !names.insert(name) {
                return refused("another one has this name, and both would keep their places in one file");
            }
        }
        Ok(())
    }

    /// Checks that values of kinds may be written.
    pub(crate) fn check_kind_gate(&self) -> Result<(), Error> {
        self.kind_gate.as_ref().map_or(Ok(()), |gate| gate.may_write())
    }

    /// The kind of a bucket's values; `None` for plain values.
    pub(crate) fn kind_of(&self, props: &BucketProps) -> Option<&Arc<dyn ValueKind>> {
        self.kinds.iter().find(|kind| kind.serves(props))
    }

    /// The kind with a number.
    pub(crate) fn numbered(&self, number: u16) -> Option<&Arc<dyn ValueKind>> {
        self.kinds.iter().find(|kind| kind.number() == number)
    }
}

/// Lets an object of a bucket that a kind serves have what clients see of its values.
pub(crate) fn show_values(kind: &dyn ValueKind, object: &mut Object) -> Result<(), Error> {
    for sibling in object.siblings.iter_mut().filter(|sibling| sibling.meta.kind == kind.number()) {
        *sibling = kind.show(std::mem::take(sibling))?;
        sibling.meta.kind = 0;
    }
    Ok(())
}

/// The error for a value of a kind that this node does not have.
pub(crate) fn unknown(number: u16) -> Error {
    Error::Unsupported(format!("this node has no values of kind {number}"))
}

/// Makes one value of several of a kind. Plain values that would merge with them stay beside them,
/// so that all replicas do the same.
pub(crate) fn unite_values(kinds: &[Arc<dyn ValueKind>], object: &mut Object) {
    if object.siblings.len() < 2 {
        return;
    }
    for kind in kinds {
        let is_one = |sibling: &Sibling| sibling.meta.kind == kind.number();
        if object.siblings.iter().filter(|sibling| is_one(sibling)).count() < 2 {
            continue;
        }
        let (values, others): (Vec<_>, Vec<_>) = object.siblings.drain(..).partition(is_one);
        object.siblings = kind.merge(values);
        object.siblings.extend(others);
    }
    object.order_siblings();
}

/// Merges the values of an object that merge. Tombstones stay beside them.
pub(crate) fn merge_values(kind: &dyn ValueKind, object: &mut Object) {
    if object.siblings.len() < 2 {
        return;
    }
    let (gone, values): (Vec<_>, Vec<_>) = object.siblings.drain(..).partition(|sibling| sibling.meta.deleted);
    object.siblings = kind.merge(values);
    object.siblings.extend(gone);
}
