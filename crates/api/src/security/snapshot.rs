//! What a node knows of security at one moment.

use ombak_security::{EffectiveGrants, Roles};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// How many users' grants are kept. Beyond that they are computed anew.
const USERS_MAX: usize = 10_000;

/// What a node knows of security at one moment. A change makes a new snapshot, so what was computed
/// from an older one is not found any more.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) roles: Roles,
    grants: RwLock<HashMap<Arc<str>, Arc<EffectiveGrants>>>,
}

impl Snapshot {
    pub(super) fn new(roles: Roles) -> Self {
        Self { roles, grants: RwLock::default() }
    }

    /// What a user may do.
    pub(super) fn grants_of(&self, user: &Arc<str>) -> Arc<EffectiveGrants> {
        if let Some(grants) = self.grants.read().get(user) {
            return Arc::clone(grants);
        }
        let grants = self.roles.grants_of(user);
        let mut kept = self.grants.write();
        if kept.len() >= USERS_MAX {
            kept.clear();
        }
        kept.insert(Arc::clone(user), Arc::clone(&grants));
        grants
    }
}
