//! Bucket properties: their names, values and meaning.
//!
//! There are two forms. A [`PropMap`] is the form that operators and clients read and write: names
//! and JSON values, stored as overrides of a type or a bucket. [`BucketProps`] is the form that the
//! engine uses: the effective values of one bucket, typed. Facts: docs/riak/semantics.md §2.3,
//! docs/riak/http-api.md §4.

mod check;
mod defaults;
mod errors;

pub use check::{PropScope, check, ttl_secs};
pub use defaults::{created_type_defaults, default_type_defaults};
pub use errors::{PropError, PropErrors, Reason};

use crate::clock::Pruning;
use crate::quorum::Quorum;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;

/// Property names and values in their JSON form. The order of the members has a meaning.
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

impl DataType {
    /// All data types, in the order in which messages name them.
    pub const ALL: [Self; 5] = [Self::Counter, Self::Set, Self::Map, Self::Hll, Self::Gset];

    /// Parses the property's value; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// The property's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Set => "set",
            Self::Map => "map",
            Self::Hll => "hll",
            Self::Gset => "gset",
        }
    }
}

/// The value of `search_index` that takes a bucket out of the index of its type.
pub const DONT_INDEX: &str = "_dont_index_";

/// Which nodes flush a client's put to the disk before it counts (property `sync_on_write`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncOnWrite {
    /// The backend's configuration decides.
    #[default]
    Backend,
    /// The coordinator flushes.
    One,
    /// Every replica flushes.
    All,
}

impl SyncOnWrite {
    /// Parses the property's value; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Backend, Self::One, Self::All].into_iter().find(|s| s.name() == name)
    }

    /// The property's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::One => "one",
            Self::All => "all",
        }
    }
}

/// A commit hook as the property names it. Ombak runs those in JavaScript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// An Erlang function.
    ModFun {
        /// The module of the function.
        module: String,
        /// The name of the function.
        function: String,
    },
    /// A JavaScript function.
    Named(String),
}

/// The effective properties of one bucket.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are Riak's property names; docs/riak/http-api.md §4 describes each")]
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
    /// `chash_bucketonly_keyfun`: the hash covers only the bucket.
    pub hash_bucket_only: bool,
    pub aae_tree_exclude: bool,
    /// The search index that has the objects of the bucket. `_dont_index_` means none.
    pub search_index: Option<Arc<str>>,
    /// Ombak's own property: the time to live of values in seconds, unless a write sets its own; 0
    /// means that values do not expire.
    pub ttl: u32,
}

impl Default for BucketProps {
    /// The properties of an unconfigured bucket of the default type.
    fn default() -> Self {
        Self {
            n_val: 3,
            allow_mult: false,
            last_write_wins: false,
            dvv_enabled: false,
            r: Quorum::Majority,
            pr: Quorum::Count(0),
            w: Quorum::Majority,
            dw: Quorum::Majority,
            pw: Quorum::Count(0),
            rw: Quorum::Majority,
            node_confirms: Quorum::Count(0),
            notfound_ok: true,
            basic_quorum: false,
            sync_on_write: SyncOnWrite::Backend,
            precommit: Vec::new(),
            postcommit: Vec::new(),
            old_vclock: 86_400,
            young_vclock: 20,
            big_vclock: 50,
            small_vclock: 50,
            backend: None,
            datatype: None,
            hll_precision: None,
            consistent: false,
            write_once: false,
            hash_bucket_only: false,
            aae_tree_exclude: false,
            search_index: None,
            ttl: 0,
        }
    }
}

impl BucketProps {
    /// Whether the bucket has no siblings: a coordinator keeps only its new value, and readers show
    /// only the newest one. Values of a data type are an exception, because they merge.
    pub const fn is_newest_only(&self) -> bool {
        self.last_write_wins || !self.allow_mult
    }

    /// The effective properties of a map. A missing name, or a value that [`check`] would refuse,
    /// counts as Riak's default. Names without a meaning in Ombak are ignored.
    pub fn from_map(map: &PropMap) -> Self {
        let d = Self::default();
        let int = |name: &str, default: u32| {
            map.get(name).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(default)
        };
        let flag = |name: &str, default: bool| map.get(name).and_then(Value::as_bool).unwrap_or(default);
        let text = |name: &str| map.get(name).and_then(Value::as_str);
        let quorum = |name: &str, default: Quorum| {
            map.get(name).and_then(quorum_value).unwrap_or(default).or_if_default(default)
        };
        Self {
            n_val: int("n_val", d.n_val).max(1),
            allow_mult: flag("allow_mult", d.allow_mult),
            last_write_wins: flag("last_write_wins", d.last_write_wins),
            dvv_enabled: flag("dvv_enabled", d.dvv_enabled),
            r: quorum("r", d.r),
            pr: quorum("pr", d.pr),
            w: quorum("w", d.w),
            dw: quorum("dw", d.dw),
            pw: quorum("pw", d.pw),
            rw: quorum("rw", d.rw),
            node_confirms: quorum("node_confirms", d.node_confirms),
            notfound_ok: flag("notfound_ok", d.notfound_ok),
            basic_quorum: flag("basic_quorum", d.basic_quorum),
            sync_on_write: text("sync_on_write").and_then(SyncOnWrite::from_name).unwrap_or_default(),
            precommit: hooks(map.get("precommit")),
            postcommit: hooks(map.get("postcommit")),
            old_vclock: int("old_vclock", d.old_vclock),
            young_vclock: int("young_vclock", d.young_vclock),
            big_vclock: int("big_vclock", d.big_vclock),
            small_vclock: int("small_vclock", d.small_vclock),
            backend: text("backend").map(|name| Bytes::copy_from_slice(name.as_bytes())),
            datatype: text("datatype").and_then(DataType::from_name),
            hll_precision: map.get("hll_precision").and_then(Value::as_u64).and_then(|n| u8::try_from(n).ok()),
            consistent: flag("consistent", d.consistent),
            write_once: flag("write_once", d.write_once),
            hash_bucket_only: map
                .get("chash_keyfun")
                .is_some_and(|f| function_name(f) == Some("chash_bucketonly_keyfun")),
            aae_tree_exclude: flag("aae_tree_exclude", d.aae_tree_exclude),
            search_index: text("search_index").filter(|name| *name != DONT_INDEX).map(Arc::from),
            ttl: int("ttl", d.ttl),
        }
    }

    /// The limits for pruning this bucket's clocks.
    pub const fn pruning(&self) -> Pruning {
        Pruning {
            small: self.small_vclock as usize,
            big: self.big_vclock as usize,
            young_secs: self.young_vclock as u64,
            old_secs: self.old_vclock as u64,
        }
    }
}

/// A quorum in a property: a count or a word.
fn quorum_value(value: &Value) -> Option<Quorum> {
    match value {
        Value::String(word) => Quorum::from_word(word),
        other => other.as_u64().and_then(|n| u32::try_from(n).ok()).map(Quorum::Count),
    }
}

fn hooks(value: Option<&Value>) -> Vec<Hook> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(hook).collect()
}

fn hook(value: &Value) -> Option<Hook> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    match (text("mod"), text("fun"), text("name")) {
        (Some(module), Some(function), _) => Some(Hook::ModFun { module, function }),
        (_, _, Some(name)) => Some(Hook::Named(name)),
        _ => None,
    }
}

fn function_name(value: &Value) -> Option<&str> {
    value.get("fun").and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
