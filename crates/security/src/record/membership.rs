//! Memberships in groups.

use super::RoleId;
use crate::bounds::GROUPS_MAX;
use crate::name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// That a user or a group is a member of a group.
///
/// It counts only while there is a group of this name with this id. A membership that was left
/// behind when its group was deleted is none of a later group of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Membership {
    pub(crate) name: String,
    pub(crate) id: RoleId,
}

/// Checks the memberships of a record.
pub(crate) fn check_groups(groups: &[Membership]) -> Result<(), String> {
    if groups.len() > GROUPS_MAX {
        return Err(format!("there can be at most {GROUPS_MAX} groups"));
    }
    groups.iter().try_for_each(|group| name::check(&group.name))?;
    let distinct: BTreeSet<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    if distinct.len() < groups.len() { Err("a group is named twice".to_owned()) } else { Ok(()) }
}
