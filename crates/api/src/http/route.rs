//! Finds the resource for a path (docs/riak/http-api.md §1–§12), for all three generations of
//! object URLs.

use super::request::Request;
use super::url::Segments;
use bytes::Bytes;
use http::Method;
use ombak_types::Bucket;

/// The generation of a URL. Links and addresses in an answer have the generation of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// `/riak/BUCKET/KEY`
    Riak,
    /// `/buckets/BUCKET/keys/KEY`
    Buckets,
    /// `/types/TYPE/buckets/BUCKET/keys/KEY`
    Types,
}

/// A resource. The resource itself decides about methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/`
    Root,
    /// `/ping`
    Ping,
    /// `/stats`
    Stats,
    /// `/metrics`
    Metrics,
    /// `/health/live`
    Live,
    /// `/health/ready`
    Ready,
    /// `/health/listeners`
    Listeners,
    /// `/admin/…`
    Admin,
    /// The buckets of a type.
    Buckets(Bytes),
    /// The properties of a type.
    TypeProps(Bytes),
    /// The properties of a bucket.
    Props(Bucket, Generation),
    /// The keys of a bucket.
    Keys(Bucket, Generation),
    /// A new object under a key that the server chooses.
    NewObject(Bucket, Generation),
    /// An object.
    Object(Bucket, Bytes, Generation),
    /// A walk along the links of an object. The steps are the undecoded parts of the path.
    LinkWalk(Bucket, Bytes, Vec<Bytes>, Generation),
    /// A secondary index query with its field and terms.
    Index(Bucket, Vec<Bytes>),
    /// A part of Riak's interface that this server does not have.
    Absent(Absent),
    /// No resource.
    Nowhere,
}

/// Parts of Riak's interface that this server does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// `/mapred`
    MapReduce,
    /// The old kind of counters.
    Counter(Bucket),
    /// Data types.
    DataType(Bucket),
    /// Replication queues.
    Queue,
    /// Anti-entropy folds.
    AaeFold,
}

impl Route {
    /// The resource of a request.
    pub fn of(request: &Request) -> Self {
        let parts = Segments::of(request.target.path_bytes());
        let names = parts.names();
        match names.as_slice() {
            [] => Self::Root,
            [b"ping"] => Self::Ping,
            [b"stats"] => Self::Stats,
            [b"metrics"] => Self::Metrics,
            [b"health", b"live"] => Self::Live,
            [b"health", b"ready"] => Self::Ready,
            [b"health", b"listeners"] => Self::Listeners,
            [b"admin", ..] => Self::Admin,
            [b"riak"] => Self::Buckets(Bytes::from_static(ombak_types::names::DEFAULT_TYPE)),
            [b"riak", ..] => older(&parts, request),
            [b"buckets", ..] => {
                newer(Bytes::from_static(ombak_types::names::DEFAULT_TYPE), &parts, 1, request, Generation::Buckets)
            }
            [b"types", _, b"props"] => Self::TypeProps(parts.part(1)),
            [b"types", _, b"buckets", ..] => newer(parts.part(1), &parts, 3, request, Generation::Types),
            [b"mapred"] => Self::Absent(Absent::MapReduce),
            [b"queuename", _] | [b"membership_request"] | [b"rtq", ..] | [b"riak-repl", ..] => {
                Self::Absent(Absent::Queue)
            }
            [
                b"cachedtrees" | b"rangetrees" | b"rangerepl" | b"rangerepair" | b"siblings" | b"objectsizes"
                | b"objectstats" | b"tombs" | b"reap" | b"erase" | b"aaebucketlist",
                ..,
            ] => Self::Absent(Absent::AaeFold),
            _ => Self::Nowhere,
        }
    }
}

/// Finds the resource below `/riak`. The meaning of a bucket's path depends on the method and on
/// the parameter `keys`.
fn older(parts: &Segments, request: &Request) -> Route {
    let generation = Generation::Riak;
    let bucket = Bucket::untyped(parts.part(1));
    match parts.names().get(1..).unwrap_or_default() {
        [_] => {
            if request.method == Method::POST {
                Route::NewObject(bucket, generation)
            } else if request.is_read()
                && (request.parameter_is("keys", "true") || request.parameter_is("keys", "stream"))
            {
                Route::Keys(bucket, generation)
            } else {
                Route::Props(bucket, generation)
            }
        }
        [_, _] => Route::Object(bucket, parts.part(2), generation),
        [_, _, ..] => Route::LinkWalk(bucket, parts.part(2), steps(request, 3), generation),
        [] => Route::Nowhere,
    }
}

/// Finds the resource below `/buckets` or `/types/TYPE/buckets`. `at` is the index of the path part
/// that names the bucket.
fn newer(bucket_type: Bytes, parts: &Segments, at: usize, request: &Request, generation: Generation) -> Route {
    let names = parts.names();
    let Some([_, rest @ ..]) = names.get(at..) else { return Route::Buckets(bucket_type) };
    let bucket = Bucket { bucket_type, name: parts.part(at) };
    let key = || parts.part(at + 2);
    match rest {
        [b"props"] => Route::Props(bucket, generation),
        [b"keys"] if request.method == Method::POST => Route::NewObject(bucket, generation),
        [b"keys"] => Route::Keys(bucket, generation),
        [b"keys", _] => Route::Object(bucket, key(), generation),
        [b"keys", _, ..] => {
            let before = if generation == Generation::Types { 6 } else { 4 };
            Route::LinkWalk(bucket, key(), steps(request, before), generation)
        }
        [b"index", terms @ ..] => Route::Index(bucket, (0..terms.len()).map(|n| parts.part(at + 2 + n)).collect()),
        [b"counters", _] if bucket.is_default_type() => Route::Absent(Absent::Counter(bucket)),
        [b"datatypes"] | [b"datatypes", _] if generation == Generation::Types => {
            Route::Absent(Absent::DataType(bucket))
        }
        _ => Route::Nowhere,
    }
}

/// The steps of a link walk: the parts of the path after the first `before` ones.
fn steps(request: &Request, before: usize) -> Vec<Bytes> {
    let parts = request.target.path().split('/').filter(|part| !part.is_empty());
    parts.skip(before).map(|part| Bytes::copy_from_slice(part.as_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, uri: &str) -> Route {
        Route::of(&Request::sample(method, uri, &[]))
    }

    #[test]
    fn every_generation_reaches_an_object() {
        let key = Bytes::from("k/1");
        assert_eq!(
            route(Method::GET, "/buckets/b/keys/k%2F1"),
            Route::Object(Bucket::untyped("b"), key.clone(), Generation::Buckets)
        );
        assert_eq!(
            route(Method::GET, "/riak/b/k%2F1"),
            Route::Object(Bucket::untyped("b"), key.clone(), Generation::Riak)
        );
        assert_eq!(
            route(Method::GET, "/types/t/buckets/b/keys/k%2F1"),
            Route::Object(Bucket::typed("t", "b"), key, Generation::Types)
        );
    }

    #[test]
    fn an_older_bucket_address_depends_on_the_request() {
        let bucket = || Bucket::untyped("b");
        assert_eq!(route(Method::GET, "/riak/b"), Route::Props(bucket(), Generation::Riak));
        assert_eq!(route(Method::GET, "/riak/b?keys=stream"), Route::Keys(bucket(), Generation::Riak));
        assert_eq!(route(Method::GET, "/riak/b?keys=false"), Route::Props(bucket(), Generation::Riak));
        assert_eq!(route(Method::POST, "/riak/b"), Route::NewObject(bucket(), Generation::Riak));
        assert_eq!(route(Method::DELETE, "/riak/b"), Route::Props(bucket(), Generation::Riak));
    }

    #[test]
    fn steps_of_a_walk_are_left_as_they_are() {
        let steps = || vec![Bytes::from("a%2Cb,_,1"), Bytes::from("_,_,_")];
        let expected = |bucket, generation| Route::LinkWalk(bucket, "k".into(), steps(), generation);
        let walk = |prefix: &str| route(Method::GET, &format!("{prefix}/k/a%2Cb,_,1/_,_,_"));
        assert_eq!(walk("/riak/b"), expected(Bucket::untyped("b"), Generation::Riak));
        assert_eq!(walk("/buckets/b/keys"), expected(Bucket::untyped("b"), Generation::Buckets));
        assert_eq!(walk("/types/t/buckets/b/keys"), expected(Bucket::typed("t", "b"), Generation::Types));
    }

    #[test]
    fn names_that_are_empty_lead_nowhere() {
        assert_eq!(route(Method::GET, "/buckets//keys/k"), Route::Nowhere);
        assert_eq!(route(Method::PUT, "/buckets/b/keys/"), Route::Keys(Bucket::untyped("b"), Generation::Buckets));
        assert_eq!(route(Method::GET, "/types"), Route::Nowhere);
        assert_eq!(route(Method::GET, "/types/t/buckets"), Route::Buckets("t".into()));
        assert_eq!(route(Method::GET, "/nonesuch"), Route::Nowhere);
    }
}
