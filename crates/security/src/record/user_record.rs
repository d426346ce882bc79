//! The record of a user.

use super::codec::{Record, VERSION};
use super::{Grant, Membership, Options, RoleId, check_grants, check_groups, check_options};
use crate::password::StoredPassword;
use crate::source::{Source, check_sources};
use serde::{Deserialize, Serialize};

/// A user, and all that belongs to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserRecord {
    version: u32,
    pub(crate) id: RoleId,
    #[serde(default)]
    pub(crate) groups: Vec<Membership>,
    #[serde(default)]
    pub(crate) options: Options,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<StoredPassword>,
    #[serde(default)]
    pub(crate) sources: Vec<Source>,
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
}

impl UserRecord {
    /// A user that has nothing.
    pub(crate) fn new(id: RoleId) -> Self {
        Self {
            version: VERSION,
            id,
            groups: Vec::new(),
            options: Options::new(),
            password: None,
            sources: Vec::new(),
            grants: Vec::new(),
        }
    }
}

impl Record for UserRecord {
    fn check(&self) -> Result<(), String> {
        check_groups(&self.groups)?;
        check_options(&self.options)?;
        check_sources(&self.sources)?;
        check_grants(&self.grants)
    }
}
