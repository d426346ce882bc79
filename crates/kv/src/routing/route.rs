//! How the requests of a bucket are coordinated. The kind of its values is another question, which
//! `engine/checked_put.rs` answers.

use crate::requests::{PutCondition, PutOptions};
use ombak_types::{BucketProps, Error};

/// How the requests of a bucket are coordinated. The properties of the bucket decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A node with a position of the key makes an event of each put, and sends the result to the
    /// other replicas.
    Plain,
    /// Values have no clocks. All replicas get the value at once (docs/riak/semantics.md §3.3).
    WriteOnce,
}

impl Route {
    /// The route of a bucket with these properties. Fails with [`Error::Unsupported`] if this node
    /// has no coordinator for the bucket: strongly consistent buckets are refused. The text is
    /// Riak's answer when no ensemble is available (docs/riak/semantics.md §9).
    #[inline]
    pub(crate) fn of(props: &BucketProps) -> Result<Self, Error> {
        if props.consistent {
            return Err(Error::Unsupported("unavailable".into()));
        }
        Ok(if props.write_once { Self::WriteOnce } else { Self::Plain })
    }
}

/// Whether a put asks a majority of the primaries before it writes: its condition must hold for the
/// whole cluster (docs/design/replication.md §17). On a node that is alone the condition is checked
/// under the key's lock instead.
#[inline]
pub(crate) fn asks_majority(options: &PutOptions) -> bool {
    options.condition != PutCondition::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_decide() {
        let props = |consistent, write_once| BucketProps { consistent, write_once, ..BucketProps::default() };
        assert_eq!(Route::of(&props(false, false)), Ok(Route::Plain));
        assert_eq!(Route::of(&props(false, true)), Ok(Route::WriteOnce));
        for write_once in [false, true] {
            assert_eq!(Route::of(&props(true, write_once)), Err(Error::Unsupported("unavailable".into())));
        }
    }

    #[test]
    fn every_condition_needs_a_majority() {
        let with = |condition| PutOptions { condition, ..PutOptions::default() };
        assert!(!asks_majority(&with(PutCondition::None)));
        assert!(asks_majority(&with(PutCondition::IfNoneMatch)));
        assert!(asks_majority(&with(PutCondition::IfNotModified(ombak_types::VectorClock::default()))));
    }
}
