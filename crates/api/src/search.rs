//! Search for both interfaces: which permissions a client needs, and how a change of indexes and
//! schemas waits.
//!
//! What it is not: it knows neither messages nor statuses, and finds nothing. `ombak-searching`
//! does.

#[cfg(test)]
pub(crate) mod testing;

use crate::access::{Access, Permission};
use ombak_kv::buckets::PropsError;
use ombak_searching::{AdminError, NameProblem, Search};
use std::sync::Arc;

/// What grants name in place of a bucket type: the indexes, and the schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Administered {
    Indexes,
    Schemas,
}

impl Administered {
    /// The access to all of them. As in Riak, no grant is for a single one.
    pub(crate) const fn access(self) -> Access<'static> {
        Access::to_type(Permission::SEARCH_ADMIN, Some(self.resource()))
    }

    const fn resource(self) -> &'static [u8] {
        match self {
            Self::Indexes => b"index",
            Self::Schemas => b"schema",
        }
    }

    /// The name of one of them, if it is a text.
    pub(crate) fn name(self, name: &[u8]) -> Result<&str, AdminError> {
        let problem = match self {
            Self::Indexes => NameProblem::Index,
            Self::Schemas => NameProblem::Schema,
        };
        std::str::from_utf8(name).map_err(|_| problem.into())
    }
}

/// The access of a query. In a grant an index stands where a bucket does, and `index` in place of
/// its type.
pub(crate) const fn query_access(index: &[u8]) -> Access<'_> {
    Access::to_bucket(Permission::SEARCH_QUERY, Some(Administered::Indexes.resource()), index)
}

/// Runs a change on a blocking thread, because it waits for other members and for the disk.
pub(crate) async fn change<T: Send + 'static>(
    search: &Arc<Search>,
    change: impl FnOnce(&Search) -> Result<T, AdminError> + Send + 'static,
) -> Result<T, AdminError> {
    let search = Arc::clone(search);
    match tokio::task::spawn_blocking(move || change(&search)).await {
        Ok(outcome) => outcome,
        Err(panic) => Err(PropsError::Storage(panic.to_string()).into()),
    }
}
