//! The resource `/`: a list of the resources. Old clients look up the prefixes of paths here.

use crate::access::Access;
use crate::http::decision_graph::{Offers, READ_ONLY, Resource, decide};
use crate::http::path::{Call, Path};
use crate::http::reply::{self, Reply};
use crate::http::wire::headers::name;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;

/// The paths of this resource.
pub const PATHS: &[Path] = &[Path::plain("root", &[], run)];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    let has_search = call.ctx.search.is_some();
    Box::pin(async move { decide(call.ctx, &mut Root { has_search }, call.request).await })
}

/// Riak's resource names with the first parts of their paths (docs/riak/http-api.md §1). The list
/// includes resources that do not exist here yet, because clients look up names here, not features.
const RESOURCES: [(&str, &[&str]); 16] = [
    (
        "riak_kv_wm_aaefold",
        &[
            "aaebucketlist",
            "cachedtrees",
            "erase",
            "objectsizes",
            "objectstats",
            "rangerepair",
            "rangerepl",
            "rangetrees",
            "reap",
            "siblings",
            "tombs",
        ],
    ),
    ("riak_kv_wm_bucket_type", &["types"]),
    ("riak_kv_wm_buckets", &["buckets", "riak", "types"]),
    ("riak_kv_wm_counter", &["buckets"]),
    ("riak_kv_wm_crdt", &["types"]),
    ("riak_kv_wm_index", &["buckets", "types"]),
    ("riak_kv_wm_keylist", &["buckets", "types"]),
    ("riak_kv_wm_link_walker", &["buckets", "riak", "types"]),
    ("riak_kv_wm_mapred", &["mapred"]),
    ("riak_kv_wm_object", &["buckets", "riak", "types"]),
    ("riak_kv_wm_ping", &["ping"]),
    ("riak_kv_wm_props", &["buckets", "types"]),
    ("riak_kv_wm_queue", &["membership_request", "queuename"]),
    ("riak_kv_wm_stats", &["stats"]),
    ("riak_repl_wm_rtenqueue", &["rtq"]),
    ("riak_repl_wm_stats", &["riak-repl"]),
];

/// Those of search. Riak's Python client does nothing of search over HTTP without them.
const OF_SEARCH: [(&str, &[&str]); 4] = [
    ("yz_wm_extract", &["search"]),
    ("yz_wm_index", &["search"]),
    ("yz_wm_schema", &["search"]),
    ("yz_wm_search", &["search", "solr"]),
];

/// The resource `GET /`.
pub struct Root {
    /// Whether the node has search.
    pub has_search: bool,
}

impl Root {
    /// A line for each path of each resource.
    fn each(&self, line: impl Fn(&str, &str) -> String) -> Vec<String> {
        let of_search: &[_] = if self.has_search { &OF_SEARCH } else { &[] };
        let all = RESOURCES.iter().chain(of_search);
        all.flat_map(|(name, paths)| paths.iter().map(|path| line(name, path))).collect()
    }
}

impl Resource for Root {
    fn access(&self) -> Option<Access<'_>> {
        None
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    fn offers(&self) -> Offers {
        let types = ["text/html", "application/json"].map(Bytes::from);
        Offers { types: types.into_iter().collect(), gzip: false }
    }

    async fn answer(&mut self, offer: usize) -> Reply {
        let mut answer = match offer {
            0 => {
                let items = self.each(|name, path| format!("<li><a href=\"/{path}\">{name}</a></li>")).concat();
                reply::html(StatusCode::OK, format!("<html><body><ul>{items}</ul></body></html>"))
            }
            // A member name occurs once for each of its paths, as clients of Riak expect.
            _ => {
                let members = self.each(|name, path| format!("\"{name}\":\"/{path}\"")).join(",");
                reply::json(StatusCode::OK, format!("{{{members}}}"))
            }
        };
        answer.set(name::LINK, self.each(|name, path| format!("</{path}>; rel=\"{name}\"")).join(","));
        answer
    }
}
