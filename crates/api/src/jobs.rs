//! The kinds of expensive requests that an operator can switch off (`cluster.job.APP.CLASS` in the
//! configuration).

use ombak_types::Error;

/// A job class: a kind of request that can be switched off. A refusal names it as Riak does
/// (docs/riak/pb-api.md §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum JobClass {
    /// Listing buckets in one reply.
    ListBuckets,
    /// Listing buckets as a stream.
    StreamListBuckets,
    /// Listing keys in one reply (HTTP only).
    ListKeys,
    /// Listing keys as a stream. Over Protocol Buffers, every listing of keys belongs to this
    /// class.
    StreamListKeys,
    /// Querying a secondary index.
    SecondaryIndex,
    /// Querying a secondary index as a stream.
    StreamSecondaryIndex,
    /// MapReduce, including link walking.
    MapReduce,
    /// MapReduce with JavaScript.
    MapReduceJs,
    /// Full-text search.
    YokozunaQuery,
}

impl JobClass {
    /// All job classes.
    pub const ALL: [Self; 9] = [
        Self::ListBuckets,
        Self::StreamListBuckets,
        Self::ListKeys,
        Self::StreamListKeys,
        Self::SecondaryIndex,
        Self::StreamSecondaryIndex,
        Self::MapReduce,
        Self::MapReduceJs,
        Self::YokozunaQuery,
    ];

    /// The name that Riak prints in a refusal.
    pub const fn term(self) -> &'static str {
        match self {
            Self::ListBuckets => "{riak_kv,list_buckets}",
            Self::StreamListBuckets => "{riak_kv,stream_list_buckets}",
            Self::ListKeys => "{riak_kv,list_keys}",
            Self::StreamListKeys => "{riak_kv,stream_list_keys}",
            Self::SecondaryIndex => "{riak_kv,secondary_index}",
            Self::StreamSecondaryIndex => "{riak_kv,stream_secondary_index}",
            Self::MapReduce => "{riak_kv,map_reduce}",
            Self::MapReduceJs => "{riak_kv,map_reduce_js}",
            Self::YokozunaQuery => "{yokozuna,query}",
        }
    }

    /// The configuration key that switches the class on or off.
    pub const fn config_key(self) -> &'static str {
        match self {
            Self::ListBuckets => "cluster.job.riak_kv.list_buckets",
            Self::StreamListBuckets => "cluster.job.riak_kv.stream_list_buckets",
            Self::ListKeys => "cluster.job.riak_kv.list_keys",
            Self::StreamListKeys => "cluster.job.riak_kv.stream_list_keys",
            Self::SecondaryIndex => "cluster.job.riak_kv.secondary_index",
            Self::StreamSecondaryIndex => "cluster.job.riak_kv.stream_secondary_index",
            Self::MapReduce => "cluster.job.riak_kv.map_reduce",
            Self::MapReduceJs => "cluster.job.riak_kv.map_reduce_js",
            Self::YokozunaQuery => "cluster.job.yokozuna.query",
        }
    }
}

/// The switches of one node. All classes are on by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobSwitches {
    disabled: u16,
}

impl JobSwitches {
    /// The same switches, with `class` on or off.
    #[must_use]
    pub const fn with(self, class: JobClass, enabled: bool) -> Self {
        let bit = 1 << class as u8;
        Self { disabled: if enabled { self.disabled & !bit } else { self.disabled | bit } }
    }

    /// Whether requests of this class are served.
    pub const fn is_enabled(self, class: JobClass) -> bool {
        self.disabled & (1 << class as u8) == 0
    }

    /// Returns `Error::JobDisabled` if the class is off.
    pub fn check(self, class: JobClass) -> Result<(), Error> {
        if self.is_enabled(class) { Ok(()) } else { Err(Error::JobDisabled(class.term())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_touches_its_own_class_only() {
        for class in JobClass::ALL {
            let switches = JobSwitches::default().with(class, false);
            for other in JobClass::ALL {
                assert_eq!(switches.is_enabled(other), other != class, "{class:?} {other:?}");
            }
            assert_eq!(switches.with(class, true), JobSwitches::default());
        }
    }

    #[test]
    fn a_refusal_has_riaks_words() {
        let off = JobSwitches::default().with(JobClass::ListKeys, false);
        let text = off.check(JobClass::ListKeys).map_err(|e| e.to_string());
        assert_eq!(text, Err("Operation '{riak_kv,list_keys}' is not enabled".into()));
    }
}
