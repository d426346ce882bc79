//! The names of permissions.

/// The name of a permission: an application, a dot and a word, such as `riak_kv.get`.
///
/// A feature with a permission of its own states it beside its requests. Riak's permissions for
/// data are constants here (docs/riak/semantics.md §11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission(&'static str);

impl Permission {
    /// Read an object.
    pub const GET: Self = Self("riak_kv.get");
    /// Write an object.
    pub const PUT: Self = Self("riak_kv.put");
    /// Delete an object.
    pub const DELETE: Self = Self("riak_kv.delete");
    /// Query a secondary index.
    pub const INDEX: Self = Self("riak_kv.index");
    /// List the keys of a bucket.
    pub const LIST_KEYS: Self = Self("riak_kv.list_keys");
    /// List the buckets of a type.
    pub const LIST_BUCKETS: Self = Self("riak_kv.list_buckets");
    /// Run a MapReduce job.
    pub const MAP_REDUCE: Self = Self("riak_kv.mapreduce");
    /// Read the preference list of a key.
    pub const GET_PREFLIST: Self = Self("riak_kv.get_preflist");
    /// Read the properties of a bucket.
    pub const GET_BUCKET: Self = Self("riak_core.get_bucket");
    /// Change the properties of a bucket.
    pub const SET_BUCKET: Self = Self("riak_core.set_bucket");
    /// Read the properties of a bucket type.
    pub const GET_BUCKET_TYPE: Self = Self("riak_core.get_bucket_type");
    /// Change the properties of a bucket type.
    pub const SET_BUCKET_TYPE: Self = Self("riak_core.set_bucket_type");
    /// Search in an index.
    pub const SEARCH_QUERY: Self = Self("search.query");
    /// Read and change indexes, or schemas.
    pub const SEARCH_ADMIN: Self = Self("search.admin");

    /// Riak's permissions for data.
    pub(crate) const OF_DATA: [Self; 14] = [
        Self::GET,
        Self::PUT,
        Self::DELETE,
        Self::INDEX,
        Self::LIST_KEYS,
        Self::LIST_BUCKETS,
        Self::MAP_REDUCE,
        Self::GET_PREFLIST,
        Self::GET_BUCKET,
        Self::SET_BUCKET,
        Self::GET_BUCKET_TYPE,
        Self::SET_BUCKET_TYPE,
        Self::SEARCH_QUERY,
        Self::SEARCH_ADMIN,
    ];

    /// A permission of a feature that Riak does not have.
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}
