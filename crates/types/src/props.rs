//! Bucket properties: what they are called, what they may hold, what they mean.
//!
//! Two forms. A [`PropMap`] is what operators and clients read and write: names and JSON values, stored as overrides
//! of a type or a bucket. [`BucketProps`] is what the engine runs on: the effective values of one bucket, typed.
//! Facts: spec/semantics.md §2.3, spec/http-api.md §4.

use crate::quorum::Quorum;
use bytes::Bytes;
use serde_json::Value;

/// Property names and values in their JSON form, in a meaningful order.
pub type PropMap = serde_json::Map<String, Value>;

/// The data type of a bucket type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    /// `counter`
    Counter,
    /// `set`
    Set,
    /// `map`
    Map,
    /// `hll`
    Hll,
    /// `gset`
    Gset,
}

/// Who flushes a client's put to the disk before it counts (property `sync_on_write`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncOnWrite {
    /// As the backend is configured.
    #[default]
    Backend,
    /// The coordinator flushes.
    One,
    /// Every replica flushes.
    All,
}

/// A commit hook as the property names it. None of them can run here: they are Erlang or JavaScript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// An Erlang function.
    ModFun {
        /// Its module.
        module: String,
        /// Its name.
        function: String,
    },
    /// A JavaScript function.
    Named(String),
}

/// The effective properties of one bucket.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are Riak's property names; spec/http-api.md §4 describes each")]
pub struct BucketProps {
    pub n_val: u32,
    pub allow_mult: bool,
    pub last_write_wins: bool,
    pub dvv_enabled: bool,
    pub r: Quorum,
    pub pr: Quorum,
    pub w: Quorum,
    pub dw: Quorum,
    pub pw: Quorum,
    pub rw: Quorum,
    pub node_confirms: Quorum,
    pub notfound_ok: bool,
    pub basic_quorum: bool,
    pub sync_on_write: SyncOnWrite,
    pub precommit: Vec<Hook>,
    pub postcommit: Vec<Hook>,
    pub old_vclock: u32,
    pub young_vclock: u32,
    pub big_vclock: u32,
    pub small_vclock: u32,
    pub backend: Option<Bytes>,
    pub datatype: Option<DataType>,
    pub hll_precision: Option<u8>,
    pub consistent: bool,
    pub write_once: bool,
    /// `chash_bucketonly_keyfun`: the hash covers the bucket alone.
    pub hash_bucket_only: bool,
    pub aae_tree_exclude: bool,
}
