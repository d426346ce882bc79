//! The functions in JavaScript that operators have registered.
//!
//! What it is: their part of the state.
//!
//! What it is not: it checks neither names nor sources, and has no bounds. The node that proposes a
//! registration has checked it, so the rules may change.

use super::command::Refusal;
use super::metadata::Metadata;
use imbl::OrdMap;
use ombak_types::PropMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A registered function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionRecord {
    /// Its source.
    pub source: Arc<str>,
    /// The index of the command that registered this source.
    pub version: u64,
}

/// The registered functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Functions {
    pub records: OrdMap<Arc<str>, FunctionRecord>,
    /// The index of the last command that changed one of them; 0: there was none. It stays when the
    /// last function is gone, because the log may still have the command.
    pub changed: u64,
}

impl Metadata {
    /// The registered functions, by name.
    pub fn functions(&self) -> &OrdMap<Arc<str>, FunctionRecord> {
        &self.functions.records
    }

    /// Whether a function was ever registered. Then log and state have what programs that do not
    /// know functions cannot read.
    pub fn has_had_functions(&self) -> bool {
        self.functions.changed > 0
    }

    pub(super) fn put_function(
        &mut self,
        index: u64,
        name: Arc<str>,
        expected: Option<u64>,
        source: Option<Arc<str>>,
    ) -> Result<(), Refusal> {
        let Functions { records, changed } = &mut self.functions;
        if records.get(&name).map(|record| record.version) != expected {
            return Err(Refusal::Changed);
        }
        match source {
            Some(source) => drop(records.insert(name, FunctionRecord { source, version: index })),
            None => drop(records.remove(&name)),
        }
        *changed = index;
        Ok(())
    }

    pub(super) fn delete_unnamed(&mut self, index: u64, name: Arc<str>, expected: u64) -> Result<(), Refusal> {
        if self.is_hook(&name) {
            return Err(Refusal::Changed);
        }
        self.put_function(index, name, Some(expected), None)
    }

    /// Whether a hook of a bucket or a type names a function. Hooks that nodes have from their
    /// configuration are no part of the state.
    fn is_hook(&self, name: &str) -> bool {
        let of_types = self.types().values().map(|record| &record.overrides);
        let of_buckets = self.buckets().values().map(|record| &record.overrides);
        of_types.chain(of_buckets).any(|overrides| sets_hook(overrides, name))
    }

    pub(super) fn take_over_functions(&mut self, index: u64, functions: Vec<(Arc<str>, Arc<str>)>) {
        let Functions { records, changed } = &mut self.functions;
        for (name, source) in functions {
            if !records.contains_key(&name) {
                records.insert(name, FunctionRecord { source, version: index });
                *changed = index;
            }
        }
    }
}

/// Whether properties name a function as a hook: `{"name": ...}`.
fn sets_hook(overrides: &PropMap, name: &str) -> bool {
    let hooks = ["precommit", "postcommit"].iter().filter_map(|hooks| overrides.get(*hooks)?.as_array()).flatten();
    hooks.into_iter().any(|hook| hook.get("name").and_then(Value::as_str) == Some(name))
}
