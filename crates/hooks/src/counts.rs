//! What a node counts about hooks. The engine counts refused puts and failed post-commit hooks
//! under Riak's names.

use crate::suspension::Suspensions;
use ombak_functions::FunctionError;
use ombak_runtime::Runtime;
use ombak_script::{ErrorKind, ScriptError};
use ombak_stats::{Feature, Figure, Number, Sum};
use ombak_types::Bucket;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of the hooks of a node, and which hooks rest because of them.
pub(crate) struct HookCounts {
    runtime: Arc<dyn Runtime>,
    suspensions: Suspensions,
    /// Post-commit hooks that were never begun.
    pub(crate) dropped: Sum,
    /// Bytes of objects that wait for post-commit hooks.
    pub(crate) waiting_bytes: AtomicU64,
    /// Pre-commit hooks that did not end in their time.
    pub(crate) pre_timeouts: Sum,
    /// The same for post-commit hooks.
    pub(crate) post_timeouts: Sum,
}

impl fmt::Debug for HookCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookCounts").finish_non_exhaustive()
    }
}

impl HookCounts {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            suspensions: Suspensions::default(),
            dropped: Sum::default(),
            waiting_bytes: AtomicU64::new(0),
            pre_timeouts: Sum::default(),
            post_timeouts: Sum::default(),
        }
    }

    /// Whether a hook of a bucket may be called now.
    pub(crate) fn admits(&self, bucket: &Bucket, hook: &str) -> bool {
        self.suspensions.admits(bucket, hook, self.runtime.now())
    }

    /// Whether a hook of a bucket is suspended, so that a call that has waited must not begin.
    pub(crate) fn is_suspended(&self, bucket: &Bucket, hook: &str) -> bool {
        self.suspensions.is_suspended(bucket, hook, self.runtime.now())
    }

    /// Notes that a hook of a bucket has reached its time limit.
    pub(crate) fn note_limit(&self, bucket: &Bucket, hook: &str) {
        self.suspensions.note_limit(bucket, hook, self.runtime.now());
    }
}

/// Whether a call did not end in its time.
pub(crate) fn is_timeout(error: &ScriptError) -> bool {
    error.kind == ErrorKind::Time
}

/// Whether work has shown that its function takes too much: it did not end in its time, made room
/// for others, or brought its process down.
pub(crate) fn reached_limit(error: &FunctionError) -> bool {
    match error {
        FunctionError::Displaced | FunctionError::Died(_) => true,
        FunctionError::Script(error) => is_timeout(error),
        _ => false,
    }
}

/// Whether work did not end in its time.
pub(crate) fn took_too_long(error: &FunctionError) -> bool {
    match error {
        FunctionError::Late | FunctionError::Displaced => true,
        FunctionError::Script(error) => is_timeout(error),
        _ => false,
    }
}

impl Feature for HookCounts {
    fn figures(&self) -> Vec<Figure<'_>> {
        let figure =
            |name: &str, metric, label, help, number| Figure { name: name.to_owned(), metric, label, help, number };
        let timeouts = |name, lane, sum: &Sum| {
            let help = "Commit hooks that did not end in their time.";
            figure(name, "hook_timeouts_total", Some(("lane", lane)), help, Number::Total(sum.get()))
        };
        vec![
            timeouts("ombak_precommit_timeouts", "precommit", &self.pre_timeouts),
            timeouts("ombak_postcommit_timeouts", "postcommit", &self.post_timeouts),
            figure(
                "ombak_postcommit_dropped",
                "postcommit_dropped_total",
                None,
                "Post-commit hooks that were never begun, because too much waited or they cannot run.",
                Number::Total(self.dropped.get()),
            ),
            figure(
                "ombak_hooks_suspended",
                "hooks_suspended",
                None,
                "Hooks of buckets that are suspended because they kept reaching their time limit.",
                Number::Gauge(self.suspensions.suspended(self.runtime.now()) as u64),
            ),
            figure(
                "ombak_hook_suspensions",
                "hook_suspensions_total",
                None,
                "How often a hook of a bucket was suspended.",
                Number::Total(self.suspensions.total.get()),
            ),
            figure(
                "ombak_hooks_refused_suspended",
                "hooks_refused_suspended_total",
                None,
                "Calls of hooks refused because the hook was suspended.",
                Number::Total(self.suspensions.refused.get()),
            ),
            figure(
                "ombak_postcommit_waiting_bytes",
                "postcommit_waiting_bytes",
                None,
                "Bytes of objects that wait for post-commit hooks.",
                Number::Gauge(self.waiting_bytes.load(Ordering::SeqCst)),
            ),
        ]
    }
}
