//! What a request does and to which bucket: the question that security answers.
//!
//! Both interfaces ask this question for each request before they call the engine: Protocol Buffers
//! in `pb::gate`, HTTP in its decision graph. For a MapReduce job, `crate::map_reduce` asks it on
//! both interfaces when the job has been read. A node without an [`AccessPolicy`] allows
//! everything.

use std::fmt;

/// A permission, with Riak's names (docs/riak/semantics.md §11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Read an object.
    Get,
    /// Write an object.
    Put,
    /// Delete an object.
    Delete,
    /// Query a secondary index.
    Index,
    /// List the keys of a bucket.
    ListKeys,
    /// List the buckets of a type.
    ListBuckets,
    /// Run a MapReduce job.
    MapReduce,
    /// Read the preference list of a key.
    GetPreflist,
    /// Read the properties of a bucket.
    GetBucket,
    /// Change the properties of a bucket.
    SetBucket,
    /// Read the properties of a bucket type.
    GetBucketType,
    /// Change the properties of a bucket type.
    SetBucketType,
}

impl Permission {
    /// Riak's name of the permission.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "riak_kv.get",
            Self::Put => "riak_kv.put",
            Self::Delete => "riak_kv.delete",
            Self::Index => "riak_kv.index",
            Self::ListKeys => "riak_kv.list_keys",
            Self::ListBuckets => "riak_kv.list_buckets",
            Self::MapReduce => "riak_kv.mapreduce",
            Self::GetPreflist => "riak_kv.get_preflist",
            Self::GetBucket => "riak_core.get_bucket",
            Self::SetBucket => "riak_core.set_bucket",
            Self::GetBucketType => "riak_core.get_bucket_type",
            Self::SetBucketType => "riak_core.set_bucket_type",
        }
    }
}

/// What a request does, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<'a> {
    /// The permission that the request needs.
    pub permission: Permission,
    /// The bucket type as the client has named it; `None` means the default type.
    pub bucket_type: Option<&'a [u8]>,
    /// The bucket as the client has named it; `None` if the request is about a whole type.
    pub bucket: Option<&'a [u8]>,
}

impl<'a> Access<'a> {
    /// An access to one bucket.
    pub const fn to_bucket(permission: Permission, bucket_type: Option<&'a [u8]>, bucket: &'a [u8]) -> Self {
        Self { permission, bucket_type, bucket: Some(bucket) }
    }

    /// An access to a bucket type.
    pub const fn to_type(permission: Permission, bucket_type: Option<&'a [u8]>) -> Self {
        Self { permission, bucket_type, bucket: None }
    }
}

/// Decides which requests are allowed. Security attaches here.
///
/// The policy is asked on network threads for each request, so it must neither block nor take long.
pub trait AccessPolicy: fmt::Debug + Send + Sync {
    /// Allows an access, or refuses it with the text for the client.
    fn check(&self, access: &Access<'_>) -> Result<(), String>;
}

/// A policy for tests: it notes every access and refuses all that it is told to.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct NotedAccesses {
    noted: parking_lot::Mutex<Vec<(&'static str, String)>>,
    refused: bool,
}

#[cfg(test)]
impl NotedAccesses {
    /// A policy that refuses every access.
    pub(crate) fn refusing() -> Self {
        Self { refused: true, ..Self::default() }
    }

    /// The accesses since the last call: the permission, and `type/bucket`.
    pub(crate) fn take(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut *self.noted.lock())
    }
}

#[cfg(test)]
impl AccessPolicy for NotedAccesses {
    fn check(&self, access: &Access<'_>) -> Result<(), String> {
        let text = |name: Option<&[u8]>| String::from_utf8_lossy(name.unwrap_or(b"-")).into_owned();
        let place = format!("{}/{}", text(access.bucket_type), text(access.bucket));
        self.noted.lock().push((access.permission.name(), place));
        if self.refused { Err(format!("no {}", access.permission.name())) } else { Ok(()) }
    }
}
