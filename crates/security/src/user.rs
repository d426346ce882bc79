//! Users and groups.

use crate::password::StoredPassword;
use crate::record::{Grant, Membership, Options, RoleId};
use crate::source::Source;
use std::sync::Arc;

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    /// The name, as it is stored.
    pub name: Arc<str>,
    /// Which user of this name it is. A user that is deleted and added again has another id.
    pub id: u64,
    /// The password, if it has one.
    pub password: Option<StoredPassword>,
    /// The options. They mean nothing to Ombak.
    pub options: Options,
    pub(crate) groups: Vec<Membership>,
    pub(crate) sources: Vec<Source>,
    pub(crate) grants: Vec<Grant>,
}

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name, as it is stored.
    pub name: Arc<str>,
    /// The options. They mean nothing to Ombak.
    pub options: Options,
    pub(crate) id: RoleId,
    pub(crate) groups: Vec<Membership>,
    pub(crate) grants: Vec<Grant>,
}
