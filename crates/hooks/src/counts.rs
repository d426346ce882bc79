//! What a node counts about hooks. The engine counts refused puts and failed post-commit hooks
//! under Riak's names.

use ombak_functions::FunctionError;
use ombak_script::{ErrorKind, ScriptError};
use ombak_stats::{Feature, Figure, Number, Sum};
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of the hooks of a node.
#[derive(Debug, Default)]
pub(crate) struct HookCounts {
    /// Post-commit hooks that were never begun.
    pub(crate) dropped: Sum,
    /// Bytes of objects that wait for post-commit hooks.
    pub(crate) waiting_bytes: AtomicU64,
    /// Pre-commit hooks that did not end in their time.
    pub(crate) pre_timeouts: Sum,
    /// The same for post-commit hooks.
    pub(crate) post_timeouts: Sum,
}

/// Whether a call did not end in its time.
pub(crate) fn is_timeout(error: &ScriptError) -> bool {
    error.kind == ErrorKind::Time
}

/// Whether work did not end in its time.
pub(crate) fn took_too_long(error: &FunctionError) -> bool {
    match error {
        FunctionError::Late | FunctionError::Stuck => true,
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
                "ombak_postcommit_waiting_bytes",
                "postcommit_waiting_bytes",
                None,
                "Bytes of objects that wait for post-commit hooks.",
                Number::Gauge(self.waiting_bytes.load(Ordering::SeqCst)),
            ),
        ]
    }
}
