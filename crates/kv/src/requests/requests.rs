//! The requests that the interfaces send to the engine, and its replies.

use bytes::Bytes;
use ombak_types::props::SyncOnWrite;
use ombak_types::stored_object::SingleSibling;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, Object, Quorum, VectorClock};
use std::time::Duration;

/// Options of a get; `None` means the bucket's property.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "Riak's option names; docs/riak/pb-api.md §6.1")]
pub struct GetOptions {
    pub r: Option<Quorum>,
    pub pr: Option<Quorum>,
    pub node_confirms: Option<Quorum>,
    pub basic_quorum: Option<bool>,
    pub notfound_ok: Option<bool>,
    pub n_val: Option<u32>,
    pub sloppy_quorum: bool,
    pub timeout: Option<Duration>,
    /// Values are not needed: the siblings of the reply have empty values.
    pub head: bool,
    /// Values of a kind ([`crate::hooks::ValueKind`]) are returned as they are stored, and not as
    /// clients see them.
    pub as_stored: bool,
}

impl Default for GetOptions {
    fn default() -> Self {
        Self {
            r: None,
            pr: None,
            node_confirms: None,
            basic_quorum: None,
            notfound_ok: None,
            n_val: None,
            sloppy_quorum: true,
            timeout: None,
            head: false,
            as_stored: false,
        }
    }
}

/// A read of one key.
#[derive(Clone, Debug)]
pub struct GetRequest {
    /// The bucket of the key.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// How to read.
    pub options: GetOptions,
}

/// What a get found.
#[derive(Clone, Debug, PartialEq)]
pub enum GetReply {
    /// The object; at least one sibling is not a tombstone.
    Found(Object),
    /// The key is absent, or it holds a tombstone; then the reply has the tombstone's clock.
    NotFound {
        /// The clock of the tombstone.
        tombstone: Option<VectorClock>,
    },
}

/// The result of a read, decoded as little as possible.
#[derive(Debug)]
pub enum Read {
    /// One copy that decides alone. It has one sibling, which is not a tombstone, so the stored
    /// bytes can be passed on.
    Single(SingleSibling),
    /// Any other result.
    Reply(GetReply),
}

impl Read {
    /// Decodes the result completely.
    pub fn into_reply(self) -> Result<GetReply, Error> {
        match self {
            Self::Single(single) => Ok(GetReply::Found(single.decode()?)),
            Self::Reply(reply) => Ok(reply),
        }
    }
}

/// The condition under which a put is executed (docs/riak/pb-api.md §6.2, docs/riak/http-api.md
/// §5.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PutCondition {
    /// The put is unconditional.
    #[default]
    None,
    /// `if_none_match`: the key must be absent. Fails with `Error::MatchFound`.
    IfNoneMatch,
    /// `if_not_modified`: the stored clock must equal this clock. Fails with `Error::Modified`, or
    /// with `Error::NotFound` when the key is absent.
    IfNotModified(VectorClock),
}

impl PutCondition {
    /// Checks the condition against the version that a key holds. A tombstone or an expired version
    /// counts as an absent key.
    pub(crate) fn check(&self, version: Option<&Object>, now: UnixMicros) -> Result<(), Error> {
        let alive = version.filter(|object| !object.is_absent(now));
        match (self, alive) {
            (Self::IfNoneMatch, Some(_)) => Err(Error::MatchFound),
            (Self::IfNotModified(_), None) => Err(Error::NotFound),
            (Self::IfNotModified(seen), Some(object)) if !object.clock.same_events(seen) => Err(Error::Modified),
            _ => Ok(()),
        }
    }
}

/// Options of a put or of the tombstone of a delete; `None` means the bucket's property.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "Riak's option names; docs/riak/pb-api.md §6.2")]
pub struct PutOptions {
    pub w: Option<Quorum>,
    pub dw: Option<Quorum>,
    pub pw: Option<Quorum>,
    pub node_confirms: Option<Quorum>,
    pub n_val: Option<u32>,
    pub sloppy_quorum: bool,
    pub sync_on_write: Option<SyncOnWrite>,
    pub timeout: Option<Duration>,
    /// Store the object with the clock that it carries, without a new event.
    pub asis: bool,
    pub condition: PutCondition,
    /// The reply has the stored object with its values.
    pub return_body: bool,
    /// The reply has the stored object without its values.
    pub return_head: bool,
    /// The number of the kind ([`crate::hooks::ValueKind`]) to whose values the put's one value is
    /// an operation. The reply then has values as they are stored. The clock of the request does
    /// not count.
    pub operation: Option<u16>,
}

impl Default for PutOptions {
    fn default() -> Self {
        Self {
            w: None,
            dw: None,
            pw: None,
            node_confirms: None,
            n_val: None,
            sloppy_quorum: true,
            sync_on_write: None,
            timeout: None,
            asis: false,
            condition: PutCondition::None,
            return_body: false,
            return_head: false,
            operation: None,
        }
    }
}

/// A write of one key.
#[derive(Clone, Debug)]
pub struct PutRequest {
    /// The bucket of the key.
    pub bucket: Bucket,
    /// The key; `None` lets the engine generate one.
    pub key: Option<Bytes>,
    /// The clock that the client has seen, and the one value that it writes. The engine sets the
    /// vtag and last-modified (not with `asis`). The interface has parsed the index entries.
    pub object: Object,
    /// How to write.
    pub options: PutOptions,
}

/// The result of a put.
#[derive(Clone, Debug, PartialEq)]
pub struct PutReply {
    /// The key that the engine generated when the request had none.
    pub key: Option<Bytes>,
    /// The stored object, when `return_body` or `return_head` asked for it. `write_once` buckets
    /// never return an object.
    pub object: Option<Object>,
}

/// A delete of one key.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// The bucket of the key.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// The clock that the client has seen; `None` makes the engine read the object first.
    pub clock: Option<VectorClock>,
    /// `r` and `pr` of that read.
    pub get: GetOptions,
    /// `w`, `dw`, `pw` of the write of the tombstone.
    pub put: PutOptions,
    /// Used for r and w when neither is given.
    pub rw: Option<Quorum>,
}

/// The result of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteReply {
    /// Whether there was an object to delete. True when the request carried a clock, because the
    /// engine then reads nothing.
    pub found: bool,
}

/// One position of a key's preference list, as the API shows it (docs/riak/pb-api.md §6.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflistItem {
    /// Partition number of the position.
    pub partition: u32,
    /// Name of the node that serves the position.
    pub node: String,
    /// Whether that node owns the position.
    pub primary: bool,
}
