//! The record of a group.

use super::codec::{Record, VERSION};
use super::{Grant, Membership, Options, RoleId, check_grants, check_groups, check_options};
use serde::{Deserialize, Serialize};

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupRecord {
    version: u32,
    pub(crate) id: RoleId,
    #[serde(default)]
    pub(crate) groups: Vec<Membership>,
    #[serde(default)]
    pub(crate) options: Options,
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
}

impl GroupRecord {
    /// A group that has nothing.
    pub(crate) fn new(id: RoleId) -> Self {
        Self { version: VERSION, id, groups: Vec::new(), options: Options::new(), grants: Vec::new() }
    }
}

impl Record for GroupRecord {
    fn check(&self) -> Result<(), String> {
        check_groups(&self.groups)?;
        check_options(&self.options)?;
        check_grants(&self.grants)
    }
}
