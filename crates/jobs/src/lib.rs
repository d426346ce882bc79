//! MapReduce jobs on the nodes of a cluster (docs/design/mapreduce.md).
//!
//! What it is: the owner of a job ([`RunningJob`]), which carries out the orders of
//! [`ombak_mapreduce::JobRun`], and the work of a node on parts of jobs, of its own and of other
//! nodes ([`Jobs::local_parts`]).
//!
//! What it is not: it knows no interface for clients, no transport and no index. Other nodes are
//! reached through [`PartNodes`], and searches are carried out by [`InputSearches`].
//!
//! Invariants:
//! * Nothing is done for a job that nobody reads: results are made when the client takes them, and
//!   a job that is dropped ends.
//! * A piece of a part is bounded in its bytes and its time, up to the results of one object.
//! * Replicas visit the keys of a share in the same order, so that each can go on where another
//!   stopped.
//! * A node works on few parts at the same time, on threads of their own that give way to
//!   all others.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod config;
mod counts;
mod functions;
mod jobs;
mod local;
mod owner;
mod part;
mod searches;

pub use config::JobsConfig;
pub use functions::JobFunctions;
pub use jobs::Jobs;
pub use local::LocalParts;
pub use ombak_mapreduce::{Failure, InputsFailure, InputsProblem};
pub use owner::{Output, RunningJob};
pub use part::{
    NoPartNodes, PartAnswer, PartClient, PartError, PartNodes, PartRequest, PartWork, PhaseOfPart, SentPiece,
};
pub use searches::{FoundInputs, InputSearch, InputSearches};
