//! The HTTP interface (port 8098): objects, bucket properties, listings, links, statistics
//! (docs/riak/http-api.md).
//!
//! What it is: Riak's resources on top of the engine. [`serve`] runs one listener. The module
//! `decision_graph` takes the decisions that HTTP itself prescribes. Each file below `resources`
//! states the facts of one resource and lists its paths; `registry` collects the lists.
//!
//! What it is not: the administration interface. Requests below `/admin` are passed to
//! [`crate::admin`].
//!
//! Invariants:
//! * Any bytes get an answer or a closed connection. Heads, bodies, connections and the memory of
//!   bodies in transit are bounded, and clients that are too slow are cut off ([`HttpLimits`]).
//! * A listing that cannot be completed says so: in its status, or with `error` at its end.
//! * What a client has stored cannot change how an answer is framed.

#![allow(
    clippy::result_large_err,
    reason = "a refusal is an answer like any other: made once a request and moved twice"
)]

mod accept;
mod base62;
mod conditional;
mod context;
mod csrf;
mod decision_graph;
mod error_status;
mod form;
mod gzip;
mod links;
mod login;
mod metadata;
mod multipart;
mod names;
mod offload;
mod pages;
mod params;
mod path;
mod range;
mod registry;
pub(crate) mod reply;
mod request;
mod resources;
mod server;
mod service;
#[cfg(test)]
pub(crate) mod tests;
mod url;
pub(crate) mod wire;

pub use context::{HttpContext, HttpLimits, StatsSource};
pub use pages::{PageRules, parse_origin};
#[cfg(test)]
pub(crate) use path::shown;
pub(crate) use path::{Part, parts_match};
pub(crate) use request::Request;
pub use server::serve;
pub(crate) use wire::request_lines;

/// All paths, as documents write them.
#[cfg(test)]
pub(crate) fn paths() -> impl Iterator<Item = String> {
    registry::paths().map(path::Path::shown)
}
