//! How a write treats the clock that it carries.

use super::Route;
use crate::requests::PutRequest;
use ombak_types::Error;

/// How a write treats the clock that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// The write is a new event.
    Coordinated,
    /// The object is stored without a clock (docs/riak/semantics.md §3.3).
    WriteOnce,
    /// The object is merged with the clock that it carries.
    AsIs,
}

impl WriteKind {
    /// The kind that a request asks for in a bucket with this route.
    pub(crate) fn of(route: Route, request: &PutRequest) -> Result<Self, Error> {
        if request.object.siblings.is_empty() {
            return Err(Error::Unsupported("a write needs a value; use delete to remove a key".into()));
        }
        Ok(match () {
            () if request.options.asis => Self::AsIs,
            // A tombstone must replace the value, so it needs a clock.
            () if route == Route::WriteOnce && !request.object.is_deleted() => Self::WriteOnce,
            () => Self::Coordinated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::PutOptions;
    use ombak_types::{Bucket, Object, Sibling, VectorClock};

    fn put(sibling: Sibling, asis: bool) -> PutRequest {
        PutRequest {
            bucket: Bucket::untyped("b"),
            key: None,
            object: Object { clock: VectorClock::default(), siblings: vec![sibling] },
            options: PutOptions { asis, ..PutOptions::default() },
        }
    }

    #[test]
    fn the_route_decides_unless_the_request_says_otherwise() {
        let value = || Sibling::new("v");
        assert_eq!(WriteKind::of(Route::Plain, &put(value(), false)), Ok(WriteKind::Coordinated));
        assert_eq!(WriteKind::of(Route::WriteOnce, &put(value(), false)), Ok(WriteKind::WriteOnce));
        assert_eq!(WriteKind::of(Route::WriteOnce, &put(Sibling::tombstone(), false)), Ok(WriteKind::Coordinated));
        assert_eq!(WriteKind::of(Route::WriteOnce, &put(value(), true)), Ok(WriteKind::AsIs));
        let mut empty = put(value(), false);
        empty.object.siblings.clear();
        assert!(WriteKind::of(Route::Plain, &empty).is_err());
    }
}
