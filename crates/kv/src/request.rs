//! What the interfaces ask of the engine and what they get.

use bytes::Bytes;
use ombak_types::props::SyncOnWrite;
use ombak_types::stored::Single;
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
    /// Values are not needed: the reply's siblings have empty ones.
    pub head: bool,
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
        }
    }
}

/// A read of one key.
#[derive(Clone, Debug)]
pub struct GetRequest {
    /// Where the key lives.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// How to read.
    pub options: GetOptions,
}

/// What a get found.
#[derive(Clone, Debug, PartialEq)]
pub enum GetReply {
    /// The object; at least one sibling is no tombstone.
    Found(Object),
    /// Nothing, or a tombstone: then with its clock.
    NotFound {
        /// The clock of the tombstone.
        tombstone: Option<VectorClock>,
    },
}

/// What a read found, as little decoded as it can be.
#[derive(Debug)]
pub enum Read {
    /// One copy that decides alone, of one sibling that is no tombstone: it can be passed on as it lies there.
    Single(Single),
    /// Anything else.
    Reply(GetReply),
}

impl Read {
    /// The outcome in full.
    pub fn into_reply(self) -> Result<GetReply, Error> {
        match self {
            Self::Single(single) => {
                single.decode().map(GetReply::Found).map_err(|corrupt| Error::Storage(corrupt.to_string()))
            }
            Self::Reply(reply) => Ok(reply),
        }
    }
}

/// What must hold for a put to go ahead (docs/riak/pb-api.md §6.2, docs/riak/http-api.md §5.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PutCondition {
    /// Nothing.
    #[default]
    None,
    /// `if_none_match`: the key must not be there. Fails with `Error::MatchFound`.
    IfNoneMatch,
    /// `if_not_modified`: the stored clock must be this one. Fails with `Error::Modified`, or `Error::NotFound` when
    /// the key is not there.
    IfNotModified(VectorClock),
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
    /// Store the object with the clock it brings, without a new event.
    pub asis: bool,
    pub condition: PutCondition,
    /// The reply holds the stored object with its values.
    pub return_body: bool,
    /// The reply holds the stored object without its values.
    pub return_head: bool,
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
        }
    }
}

/// A write of one key.
#[derive(Clone, Debug)]
pub struct PutRequest {
    /// Where the key lives.
    pub bucket: Bucket,
    /// The key; `None` lets the engine make one.
    pub key: Option<Bytes>,
    /// The clock that the client has seen and the one value it writes. Vtag and last-modified are set by the engine
    /// (not with `asis`). Index entries have been parsed by the interface.
    pub object: Object,
    /// How to write.
    pub options: PutOptions,
}

/// What a put did.
#[derive(Clone, Debug, PartialEq)]
pub struct PutReply {
    /// The key that the engine made, when the request had none.
    pub key: Option<Bytes>,
    /// The stored object, when `return_body` or `return_head` asked for it. `write_once` buckets never return one.
    pub object: Option<Object>,
}

/// A delete of one key.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// Where the key lives.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// What the client has seen; `None` makes the engine read first.
    pub clock: Option<VectorClock>,
    /// `r` and `pr` of that read.
    pub get: GetOptions,
    /// `w`, `dw`, `pw` of the tombstone's write.
    pub put: PutOptions,
    /// Stands in for r and w where they are not given.
    pub rw: Option<Quorum>,
}

/// What a delete did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteReply {
    /// Whether there was something to delete; true when the request brought a clock, as nothing is read then.
    pub found: bool,
}

/// One position of a key's preference list, as the API shows it (docs/riak/pb-api.md §6.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflistItem {
    /// Partition number of the position.
    pub partition: u32,
    /// Name of the node that answers for it.
    pub node: String,
    /// Whether that node owns the position.
    pub primary: bool,
}
