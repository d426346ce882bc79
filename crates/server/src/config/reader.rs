//! Typed access to the values in force.

use super::effective::{Effective, Setting};
use super::problem::Problem;
use super::settings::Listen;
use super::value::Value;
use serde_json::json;
use std::time::Duration;

/// Typed access to the values in force. A key that is missing or has another type is a programming
/// error; it is reported as a problem instead of being hidden.
pub(super) struct Reader<'a> {
    effective: &'a Effective,
    /// With several backends, the name of the backend whose options are read.
    backend: Option<&'a str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(effective: &'a Effective) -> Self {
        Self { effective, backend: None }
    }

    /// A reader for one of several backends: its own options take precedence over those of the
    /// node.
    pub(super) fn of_backend(&self, name: &'a str) -> Self {
        Self { effective: self.effective, backend: Some(name) }
    }

    pub(super) fn effective(&self) -> &'a Effective {
        self.effective
    }

    /// The key that takes precedence: the key of the backend if it was set, otherwise the key of
    /// the node.
    pub(super) fn key(&self, key: &str) -> String {
        let own = self.backend.map(|name| format!("multi_backend.{name}.{key}"));
        own.filter(|own| self.effective.get(own).is_some()).unwrap_or_else(|| key.to_owned())
    }

    pub(super) fn optional(&self, key: &str) -> Option<&Value> {
        self.effective.get(&self.key(key))
    }

    pub(super) fn value(&self, key: &str) -> Result<&Value, Problem> {
        self.optional(key).ok_or_else(|| Problem::whole(format!("{key} has no value")))
    }

    pub(super) fn text(&self, key: &str) -> Result<String, Problem> {
        match self.value(key)? {
            Value::Text(text) => Ok(text.clone()),
            other => Err(mismatch(key, other)),
        }
    }

    /// The words of a list, which is separated by whitespace. Empty if the key has no value.
    pub(super) fn words(&self, key: &str) -> Result<Vec<String>, Problem> {
        match self.optional(key) {
            None => Ok(Vec::new()),
            Some(Value::Text(text)) => Ok(text.split_whitespace().map(str::to_owned).collect()),
            Some(other) => Err(mismatch(key, other)),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, Problem> {
        match self.value(key)? {
            Value::Flag(on) => Ok(*on),
            other => Err(mismatch(key, other)),
        }
    }

    pub(super) fn count<T: TryFrom<i64>>(&self, key: &str) -> Result<T, Problem> {
        match self.value(key)? {
            Value::Int(n) => T::try_from(*n).map_err(|_| Problem::whole(format!("{key} = {n} is out of range"))),
            other => Err(mismatch(key, other)),
        }
    }

    pub(super) fn bytes(&self, key: &str) -> Result<u64, Problem> {
        match self.value(key)? {
            Value::Bytes(n) => Ok(*n),
            other => Err(mismatch(key, other)),
        }
    }

    pub(super) fn duration(&self, key: &str) -> Result<Duration, Problem> {
        match self.value(key)? {
            Value::Duration(d) => Ok(*d),
            other => Err(mismatch(key, other)),
        }
    }

    pub(super) fn optional_duration(&self, key: &str) -> Option<Duration> {
        match self.optional(key) {
            Some(Value::Duration(d)) => Some(*d),
            _ => None,
        }
    }

    pub(super) fn listeners(&self, pattern: &str) -> Result<Vec<Listen>, Problem> {
        let listen = |s: &Setting| match &s.value {
            Some(Value::Address(address)) => Ok(Listen { key: s.key.clone(), address: *address }),
            _ => Err(Problem::whole(format!("{} has no address", s.key))),
        };
        self.effective.instances(pattern).map(listen).collect()
    }

    /// A property value as JSON: numbers and flags as such, words as text.
    pub(super) fn prop(&self, key: &str) -> Result<serde_json::Value, Problem> {
        match self.value(key)? {
            Value::Int(n) => Ok(json!(n)),
            Value::Text(word) => Ok(json!(word)),
            Value::Flag(on) => Ok(json!(on)),
            other => Err(mismatch(key, other)),
        }
    }
}

pub(super) fn mismatch(key: &str, value: &Value) -> Problem {
    Problem::whole(format!("{key} = {value} is of an unexpected type"))
}
