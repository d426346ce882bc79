//! The commit hooks of buckets: functions in JavaScript that see each put.
//!
//! What it is: [`NodeHooks`] attaches to the engine ([`CommitHooks`]). It finds the functions that
//! the properties `precommit` and `postcommit` name, gives them the object as JSON, and says what
//! becomes of the put.
//!
//! What it is not: it has no threads; `ombak-functions` has them. The engine says when hooks run.
//!
//! Invariants:
//! * A hook that fails in whatever way fails its put and nothing else, with Riak's answer.
//! * A put waits for its pre-commit hooks no longer than its client. It never waits for post-commit
//!   hooks.
//! * What waits for post-commit hooks is bounded in number and bytes. What does not fit is dropped
//!   and counted.
//! * A hook that keeps reaching its time limit is suspended in its bucket for a while. Then its
//!   puts are refused with `overload`.
//! * Bucket, key and clock of a put stay as they are, whatever a hook gives back.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod counts;
mod opened;
mod post_commit;
mod pre_commit;
mod suspension;
#[cfg(test)]
mod tests;

use counts::HookCounts;
use ombak_functions::{Catalogue, FunctionPool, Owner};
use ombak_kv::hooks::{CommitHooks, HookedKey};
use ombak_runtime::{BoxFuture, Runtime};
use ombak_stats::Feature;
use ombak_types::props::Hook;
use ombak_types::{Bucket, Error, Object};
use opened::OpenFunctions;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a hook may wait and run if the client sets no limit.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The commit hooks of a node.
pub struct NodeHooks {
    functions: OpenFunctions,
    runtime: Arc<dyn Runtime>,
    counts: Arc<HookCounts>,
}

impl NodeHooks {
    /// Creates the hooks of a node, whose functions run in `pool` and are found in `catalogue`.
    pub fn new(runtime: Arc<dyn Runtime>, pool: FunctionPool, catalogue: Catalogue) -> Self {
        let counts = Arc::new(HookCounts::new(runtime.clone()));
        Self { functions: OpenFunctions::new(pool, catalogue), runtime, counts }
    }

    fn until(&self, until: Option<Instant>) -> Instant {
        until.unwrap_or_else(|| self.runtime.now() + WAIT_MAX)
    }
}

/// For whom a hook runs: the hook of this bucket.
fn owner(bucket: &Bucket, hook: &str) -> Owner {
    Owner::new(format!("{}/{} {hook}", bucket.bucket_type.escape_ascii(), bucket.name.escape_ascii()))
}

impl CommitHooks for NodeHooks {
    fn pre_commit(
        &self,
        at: HookedKey,
        hooks: Vec<Hook>,
        object: Object,
        until: Option<Instant>,
    ) -> BoxFuture<'_, Result<Object, Error>> {
        let until = self.until(until);
        Box::pin(pre_commit::run_all(&self.functions, &self.counts, at, hooks, object, until))
    }

    fn post_commit(&self, at: HookedKey, hooks: Vec<Hook>, object: Object, failed: Arc<dyn Fn() + Send + Sync>) {
        let until = self.until(None);
        post_commit::queue_all(&self.functions, &self.counts, (at, object), hooks, until, &failed);
    }

    fn feature(&self) -> Option<Arc<dyn Feature>> {
        Some(self.counts.clone())
    }
}
