//! Finds the resource for a path, for all three generations of URLs. Hot.
//!
//! A resource appears here once, with the list of its paths. The first path that matches serves the
//! request, so a path with a condition comes before the same path without one.

use super::path::{Path, PathGuard};
use super::request::Request;
use super::resources::*;
use super::url::Segments;
use bytes::Bytes;

/// The paths of every resource. Objects come first, because most requests are for objects.
const RESOURCES: &[&[Path]] = &[
    object::PATHS,
    link_walk::PATHS,
    index::PATHS,
    keys::PATHS,
    props::PATHS,
    buckets::PATHS,
    type_props::PATHS,
    data_type::PATHS,
    counter::PATHS,
    map_reduce::PATHS,
    folds::PATHS,
    search::PATHS,
    root::PATHS,
    ping::PATHS,
    stats::PATHS,
    metrics::PATHS,
    health::PATHS,
    administration::PATHS,
    unsupported::PATHS,
];

/// The path that serves a request, and the parts of the request's path.
pub fn find(request: &Request) -> Option<(&'static Path, Segments)> {
    let parts = Segments::of(request.target.path_bytes());
    let names = parts.names();
    let path = RESOURCES.iter().copied().flatten().find(|path| path.matches(&names, request))?;
    drop(names);
    Some((path, parts))
}

/// All paths.
#[cfg(test)]
pub fn paths() -> impl Iterator<Item = &'static Path> {
    RESOURCES.iter().copied().flatten()
}

/// Who may send requests for a path while security is on. A path that nobody serves is for users.
pub fn guard(path: Bytes) -> PathGuard {
    let parts = Segments::of(path);
    let names = parts.names();
    let path = RESOURCES.iter().copied().flatten().find(|path| path.has_parts(&names));
    path.map_or(PathGuard::User, |path| path.guard)
}

#[cfg(test)]
mod tests {
    use super::super::path::Generation;
    use super::*;
    use http::Method;
    use ombak_types::Bucket;

    /// The resource of a request with the bucket and key that its path names.
    fn found(method: Method, uri: &str) -> Option<(&'static str, Generation, Bucket, String)> {
        let (path, parts) = find(&Request::sample(method, uri, &[]))?;
        let key = String::from_utf8_lossy(&path.key(&parts)).into_owned();
        Some((path.resource, path.generation, path.bucket(&parts), key))
    }

    fn resource(method: Method, uri: &str) -> Option<&'static str> {
        found(method, uri).map(|(resource, ..)| resource)
    }

    #[test]
    fn every_generation_reaches_an_object() {
        let key = || "k/1".to_owned();
        assert_eq!(
            found(Method::GET, "/buckets/b/keys/k%2F1"),
            Some(("object", Generation::Buckets, Bucket::untyped("b"), key()))
        );
        assert_eq!(
            found(Method::GET, "/riak/b/k%2F1"),
            Some(("object", Generation::Riak, Bucket::untyped("b"), key()))
        );
        assert_eq!(
            found(Method::GET, "/types/t/buckets/b/keys/k%2F1"),
            Some(("object", Generation::Types, Bucket::typed("t", "b"), key()))
        );
    }

    #[test]
    fn an_older_bucket_address_depends_on_the_request() {
        assert_eq!(resource(Method::GET, "/riak/b"), Some("props"));
        assert_eq!(resource(Method::GET, "/riak/b?keys=stream"), Some("keys"));
        assert_eq!(resource(Method::GET, "/riak/b?keys=false"), Some("props"));
        assert_eq!(resource(Method::POST, "/riak/b"), Some("new object"));
        assert_eq!(resource(Method::DELETE, "/riak/b"), Some("props"));
        assert_eq!(resource(Method::POST, "/buckets/b/keys"), Some("new object"));
        assert_eq!(resource(Method::POST, "/types/t/buckets/b/keys"), Some("new object"));
    }

    #[test]
    fn longer_paths_are_link_walks() {
        for prefix in ["/riak/b", "/buckets/b/keys", "/types/t/buckets/b/keys"] {
            let uri = format!("{prefix}/k/a%2Cb,_,1/_,_,_");
            let (resource, _, bucket, key) = found(Method::GET, &uri).expect("a resource");
            assert_eq!((resource, &bucket.name[..], key.as_str()), ("link walk", &b"b"[..], "k"), "{uri}");
        }
    }

    #[test]
    fn every_resource_is_found() {
        for (uri, expected) in [
            ("/", "root"),
            ("/ping", "ping"),
            ("/stats", "stats"),
            ("/metrics", "metrics"),
            ("/health/live", "live"),
            ("/health/ready", "ready"),
            ("/health/listeners", "listeners"),
            ("/admin", "administration"),
            ("/admin/a/b", "administration"),
            ("/riak", "buckets"),
            ("/buckets", "buckets"),
            ("/types/t/buckets", "buckets"),
            ("/types/t/props", "type props"),
            ("/buckets/b/props", "props"),
            ("/types/t/buckets/b/props", "props"),
            ("/buckets/b/keys", "keys"),
            ("/types/t/buckets/b/keys", "keys"),
            ("/buckets/b/index", "index"),
            ("/buckets/b/index/f/1", "index"),
            ("/types/t/buckets/b/index/f/1/2", "index"),
            ("/mapred", "MapReduce"),
            ("/search/query/i", "search query"),
            ("/solr/i/select", "search query"),
            ("/search/index", "search index"),
            ("/search/index/i", "search index"),
            ("/search/schema/s", "search schema"),
            ("/search/extract", "search extract"),
            ("/buckets/b/counters/k", "counter"),
            ("/types/default/buckets/b/counters/k", "counter"),
            ("/types/t/buckets/b/datatypes", "data type"),
            ("/types/t/buckets/b/datatypes/k", "data type"),
            ("/queuename/q", "queue"),
            ("/membership_request", "queue"),
            ("/rtq", "queue"),
            ("/riak-repl/stats", "queue"),
            ("/cachedtrees/nvals/3/root", "anti-entropy fold"),
            ("/rangetrees/types/t/buckets/b/trees/large", "anti-entropy fold"),
            ("/reap/buckets/b", "anti-entropy fold"),
        ] {
            assert_eq!(resource(Method::GET, uri), Some(expected), "{uri}");
        }
    }

    #[test]
    fn names_that_are_empty_are_not_found() {
        assert_eq!(resource(Method::PUT, "/buckets/b/keys/"), Some("keys"));
        for uri in [
            "/buckets//keys/k",
            "/types",
            "/nonesuch",
            "/ping/x",
            "/types/t/buckets/b/counters/k",
            "/buckets/b/datatypes/k",
            "/buckets/b/nonesuch",
            "/search",
            "/search/query",
            "/search/schema",
            "/solr/i/update",
        ] {
            assert_eq!(resource(Method::GET, uri), None, "{uri}");
        }
    }
}
