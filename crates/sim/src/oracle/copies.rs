//! What the stores of nodes hold of a key.

use ombak_kv::Kv;
use ombak_storage::{Backend, ReadMode, Stored};
use ombak_types::{Object, Sibling, stored_object};
use std::collections::{BTreeMap, BTreeSet};

use crate::world::HostId;

/// The name of the metadata that carries the token of a write.
pub const TOKEN_NAME: &[u8] = b"token";

/// The number of a write.
pub type Token = u64;

/// The event id of a value: actor and counter.
pub type EventId = (Vec<u8>, u64);

/// What one store holds of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskCopy {
    /// Nothing.
    Absent,
    /// A version that cannot be read.
    Unreadable,
    /// A version.
    Version {
        /// The writes whose values it has, tombstones included.
        tokens: BTreeSet<Token>,
        /// The event ids of those values.
        events: Vec<(EventId, Token)>,
        /// The newest event of each actor that it has seen.
        clock: Vec<EventId>,
        /// The digest of the whole version.
        digest: u64,
        /// Whether it survives a loss of power.
        is_synced: bool,
        /// Whether it is a tombstone that has lost its time (docs/design/replication.md §6).
        is_timeless: bool,
        /// Whether its newest part is a tombstone, and values are beside it.
        hides_values: bool,
        /// Whether its node has it in doubt (docs/design/anti-entropy.md §5).
        is_in_doubt: bool,
        /// What is wrong with it, if anything is.
        fault: Option<String>,
    },
}

impl DiskCopy {
    /// The writes whose values the copy has.
    pub fn tokens(&self) -> Option<&BTreeSet<Token>> {
        match self {
            Self::Version { tokens, .. } => Some(tokens),
            Self::Absent | Self::Unreadable => None,
        }
    }

    /// Whether the copy has seen an event.
    pub fn has_seen(&self, (actor, counter): &EventId) -> bool {
        let Self::Version { clock, .. } = self else { return false };
        clock.iter().any(|(of, newest)| of == actor && newest >= counter)
    }
}

/// What all disks hold of a key.
pub type Copies = BTreeMap<HostId, DiskCopy>;

/// Reads what the store of a partition holds of a storage key. Versions that its node has set aside
/// count as absent, as everywhere else.
pub fn peek(store: &dyn Backend, storage_key: &[u8], kv: Option<&Kv>, partition: u32) -> DiskCopy {
    match store.get_with_expired(storage_key, ReadMode::Blocking) {
        Ok(None) => DiskCopy::Absent,
        Ok(Some(stored)) if stored.seq <= set_aside_to(kv, partition) => DiskCopy::Absent,
        Ok(Some(stored)) => decode(&stored, store.is_synced(stored.seq), is_in_doubt(kv, partition, stored.seq)),
        Err(_) => DiskCopy::Unreadable,
    }
}

/// Up to which seq the versions of a partition are set aside on a node; 0: none is
/// (docs/design/replication.md §8).
pub(super) fn set_aside_to(kv: Option<&Kv>, partition: u32) -> u64 {
    let found = kv.and_then(|kv| kv.repair_host().partitions().get(partition));
    found.map_or(0, |partition| partition.set_aside_to())
}

fn is_in_doubt(kv: Option<&Kv>, partition: u32, seq: u64) -> bool {
    kv.is_some_and(|kv| kv.repair_host().transfers().is_doubtful(partition, seq))
}

fn decode(stored: &Stored, is_synced: bool, is_in_doubt: bool) -> DiskCopy {
    let Ok(object) = stored_object::decode(&stored.head, stored.body.as_ref()) else { return DiskCopy::Unreadable };
    let (tokens, fault) = tokens_of(&object);
    let Seen { clock, events, .. } = seen_in(&object);
    let is_timeless = object.is_deleted() && !object.has_timed_tombstone();
    let hides_values = hides_values(&object);
    let digest = stored.digest;
    DiskCopy::Version { events, clock, tokens, digest, is_synced, is_timeless, hides_values, is_in_doubt, fault }
}

/// Whether a tombstone is newer than all values of an object.
fn hides_values(object: &Object) -> bool {
    let newest = |is_deleted: bool| {
        let times = object.siblings.iter().filter(|s| s.meta.deleted == is_deleted).map(|s| s.meta.last_modified);
        times.max()
    };
    matches!((newest(true), newest(false)), (Some(deletion), Some(value)) if deletion > value)
}

/// What a version has seen and holds.
pub(super) struct Seen {
    /// The events of its clock.
    pub(super) clock: Vec<EventId>,
    /// The writes whose values it has.
    pub(super) tokens: BTreeSet<Token>,
    /// The events of these writes.
    pub(super) events: Vec<(EventId, Token)>,
}

/// What a version has seen and holds. The values themselves may be missing.
pub(super) fn seen_in(object: &Object) -> Seen {
    let events = object.siblings.iter().filter_map(|sibling| {
        let dot = sibling.meta.dot.as_ref()?;
        Some(((dot.actor.as_bytes().to_vec(), dot.counter), token_of(sibling)?))
    });
    let clock = object.clock.entries().iter().map(|entry| (entry.actor.as_bytes().to_vec(), entry.counter)).collect();
    Seen { clock, tokens: object.siblings.iter().filter_map(token_of).collect(), events: events.collect() }
}

/// The writes whose values an object has, and what is wrong with it, if anything is.
pub fn tokens_of(object: &Object) -> (BTreeSet<Token>, Option<String>) {
    let mut tokens = BTreeSet::new();
    let mut fault = object.siblings.is_empty().then(|| "it has no value at all".to_owned());
    for sibling in &object.siblings {
        match token_of(sibling) {
            Some(token) if sibling.meta.deleted || sibling.value == value_of(token) => {
                tokens.insert(token);
            }
            Some(token) => fault = Some(format!("the value of write {token} is not what was written")),
            None => fault = Some("a value carries no token of a write".to_owned()),
        }
    }
    (tokens, fault)
}

fn token_of(sibling: &Sibling) -> Option<Token> {
    let (_, token) = sibling.meta.user_meta.iter().find(|(name, _)| name == TOKEN_NAME)?;
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// The value of a write. One in eight is longer than what a node reads at once.
pub fn value_of(token: Token) -> String {
    let length = match token % 8 {
        0 => 3000,
        1..4 => 200,
        _ => 10,
    };
    let mut text = format!("value of write {token}. ").repeat(length / 20 + 1);
    text.truncate(length.max(20));
    text
}
