//! The settings of one or more files.

use crate::term::Term;
use std::collections::BTreeMap;

/// `{Key, Value}.` of all files; later ones win.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(BTreeMap<String, Term>);

impl Settings {
    /// A setting as it was written.
    pub fn get(&self, key: &str) -> Option<&Term> {
        self.0.get(key)
    }

    /// Sets one; a later one wins.
    pub fn set(&mut self, key: impl Into<String>, value: Term) {
        self.0.insert(key.into(), value);
    }

    /// All names.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
