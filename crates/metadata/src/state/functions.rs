//! The functions in JavaScript that operators have registered: the namespace [`FUNCTIONS`].
//!
//! What it is: the commands that know more of functions than their records. Two of them keep hooks
//! and functions together, and the others are how versions without open records change functions.
//!
//! What it is not: it checks neither names nor sources. The node that proposes a registration has
//! checked it, so the rules may change.

use super::command::Refusal;
use super::metadata::Metadata;
use bytes::Bytes;
use ombak_types::PropMap;
use serde_json::Value;
use std::sync::Arc;

/// The namespace of the registered functions. A key is a name, and a value is a source.
pub const FUNCTIONS: &str = "functions";

impl Metadata {
    pub(super) fn is_function(&self, name: &str) -> bool {
        self.record(FUNCTIONS, name.as_bytes()).is_some()
    }

    pub(super) fn put_function(
        &mut self,
        index: u64,
        name: Arc<str>,
        expected: Option<u64>,
        source: Option<Arc<str>>,
    ) -> Result<(), Refusal> {
        self.open.put(index, FUNCTIONS.into(), key_of(&name), expected, source)
    }

    pub(super) fn delete_unnamed(&mut self, index: u64, name: &str, expected: u64) -> Result<(), Refusal> {
        if self.is_hook(name) {
            return Err(Refusal::Changed);
        }
        self.open.put(index, FUNCTIONS.into(), key_of(name), Some(expected), None)
    }

    /// Whether a hook of a bucket or a type names a function. Hooks that nodes have from their
    /// configuration are no part of the state.
    fn is_hook(&self, name: &str) -> bool {
        let of_types = self.types().values().map(|record| &record.overrides);
        let of_buckets = self.buckets().values().map(|record| &record.overrides);
        of_types.chain(of_buckets).any(|overrides| sets_hook(overrides, name))
    }

    pub(super) fn take_over_functions(&mut self, index: u64, functions: Vec<(Arc<str>, Arc<str>)>) {
        for (name, source) in functions {
            // A function that is registered already stays as it is.
            let _ = self.put_function(index, name, None, Some(source));
        }
    }
}

fn key_of(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

/// Whether properties name a function as a hook: `{"name": ...}`.
fn sets_hook(overrides: &PropMap, name: &str) -> bool {
    let hooks = ["precommit", "postcommit"].iter().filter_map(|hooks| overrides.get(*hooks)?.as_array()).flatten();
    hooks.into_iter().any(|hook| hook.get("name").and_then(Value::as_str) == Some(name))
}
