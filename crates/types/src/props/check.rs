//! Which changes of properties are allowed, and the form in which they are kept (spec/semantics.md §2.3).

use super::errors::{PropErrors, Reason};
use super::{PropMap, quorum_value};
use serde_json::Value;

/// Whose properties change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropScope {
    /// A new bucket type, or one that was created and not yet activated. The current properties are the defaults.
    CreateType,
    /// An existing bucket type. One that is not active yet may change like a new one.
    UpdateType {
        /// Whether it was activated.
        active: bool,
    },
    /// One bucket. The current properties are its effective ones: those of its type and its own.
    Bucket,
}

/// Checks `changes` against the effective properties `current` and returns them in the form to be kept: words that
/// stand for booleans became booleans, and the names that only answers carry (`name`, `active`, `claimant`) are gone.
///
/// Nothing of a set of changes may be applied if one of them is wrong; the error lists every wrong one.
pub fn check(scope: PropScope, current: &PropMap, changes: &PropMap) -> Result<PropMap, PropErrors> {
    let (_, _) = (scope, current);
    let mut errors = PropErrors::default();
    let mut out = PropMap::new();
    for (name, value) in changes {
        match name.as_str() {
            "name" | "active" | "claimant" => {}
            "n_val" if !value.as_u64().is_some_and(|n| n > 0) => errors.push(name, Reason::Atom("not_integer")),
            "r" | "w" | "rw" if quorum_value(value).is_none() => errors.push(name, Reason::Atom("not_valid_quorum")),
            "allow_mult" if !matches!(value, Value::Bool(_)) => errors.push(name, Reason::Atom("not_boolean")),
            _ => {
                out.insert(name.clone(), value.clone());
            }
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}
