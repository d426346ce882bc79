//! The record of all users.

use super::codec::{Record, VERSION};
use super::{Grant, check_grants};
use crate::source::{Source, check_sources};
use serde::{Deserialize, Serialize};

/// The sources and grants of all users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllRecord {
    version: u32,
    #[serde(default)]
    pub(crate) sources: Vec<Source>,
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
}

impl Default for AllRecord {
    fn default() -> Self {
        Self { version: VERSION, sources: Vec::new(), grants: Vec::new() }
    }
}

impl Record for AllRecord {
    fn check(&self) -> Result<(), String> {
        check_sources(&self.sources)?;
        check_grants(&self.grants)
    }
}
