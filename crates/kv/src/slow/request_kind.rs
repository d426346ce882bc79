//! The kinds of requests in the log of slow ones.

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// The read of an object.
    Get,
    /// The read of a value of a data type, or of a counter.
    Fetch,
    /// The write of an object.
    Put,
    /// An operation on a value of a data type, or on a counter.
    Update,
    /// A delete, with the read that finds the clock if the client gave none.
    Delete,
    /// A listing of the keys of a bucket.
    ListKeys,
    /// A listing of the buckets of a type.
    ListBuckets,
    /// An index query.
    IndexQuery,
    /// A MapReduce job.
    Job,
}

impl RequestKind {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 9] = [
        Self::Get,
        Self::Fetch,
        Self::Put,
        Self::Update,
        Self::Delete,
        Self::ListKeys,
        Self::ListBuckets,
        Self::IndexQuery,
        Self::Job,
    ];

    /// The name in log lines and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Fetch => "fetch",
            Self::Put => "put",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::ListKeys => "list_keys",
            Self::ListBuckets => "list_buckets",
            Self::IndexQuery => "index_query",
            Self::Job => "job",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_places_in_the_list() {
        assert!(RequestKind::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    }
}
