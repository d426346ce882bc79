//! The HTTP interface (port 8098): objects, bucket properties, listings, links, statistics (docs/riak/http-api.md).
//!
//! What it is: Riak's resources over the engine. [`serve`] runs one listener; `graph` takes the decisions that HTTP
//! itself prescribes; each file below `resources` states the facts of one resource.
//!
//! What it is not: the administration interface. Requests below `/admin` are handed to [`crate::admin`].
//!
//! Invariants:
//! * any bytes get an answer or a closed connection: heads, bodies, connections and the memory of bodies under way are
//!   bounded, and whoever is too slow is cut off ([`HttpLimits`]);
//! * a listing that cannot be finished is cut off visibly, never ended as if it were complete;
//! * what a client stored cannot change how an answer is framed.

#![allow(
    clippy::result_large_err,
    reason = "a refusal is an answer like any other: made once a request and moved twice"
)]

mod accept;
mod base62;
mod beside;
mod conditional;
mod context;
mod csrf;
mod erlang;
mod failure;
mod graph;
mod gzip;
mod links;
mod metadata;
mod multipart;
mod names;
mod pages;
mod params;
mod range;
pub(crate) mod reply;
mod request;
mod resources;
mod route;
mod server;
mod service;
#[cfg(test)]
mod tests;
mod url;
pub(crate) mod wire;

pub use context::{HttpContext, HttpLimits, StatsSource};
pub use pages::{PageRules, parse_origin};
pub(crate) use request::Request;
pub use server::serve;
pub(crate) use wire::request_lines;
