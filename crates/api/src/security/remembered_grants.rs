//! What users may do, so that a request need not gather it again. Hot.

use ombak_security::{EffectiveGrants, User};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// How many users' grants are kept. When there are more, all are forgotten and gathered anew.
const USERS_MAX: usize = 10_000;

/// What users may do. All snapshots share it: what was gathered counts while the record of the user
/// is the same, and while nothing has changed that users inherit. So a change of one user costs the
/// others nothing.
#[derive(Debug, Default)]
pub(super) struct RememberedGrants(RwLock<HashMap<Arc<str>, Remembered>>);

#[derive(Debug)]
struct Remembered {
    /// The user as it was. A user that has another allocation may have been changed.
    user: Weak<User>,
    inherited_version: u64,
    grants: Arc<EffectiveGrants>,
}

impl RememberedGrants {
    /// What a user may do, gathered by `gather` if it is not known for this state of the user and
    /// of what it inherits.
    pub(super) fn of(
        &self,
        user: &Arc<User>,
        inherited_version: u64,
        gather: impl FnOnce() -> Arc<EffectiveGrants>,
    ) -> Arc<EffectiveGrants> {
        if let Some(known) = self.0.read().get(&user.name)
            && known.inherited_version == inherited_version
            && std::ptr::eq(known.user.as_ptr(), Arc::as_ptr(user))
        {
            return Arc::clone(&known.grants);
        }
        let grants = gather();
        let known = Remembered { user: Arc::downgrade(user), inherited_version, grants: Arc::clone(&grants) };
        let mut all = self.0.write();
        if all.len() >= USERS_MAX && !all.contains_key(&user.name) {
            all.clear();
        }
        all.insert(Arc::clone(&user.name), known);
        grants
    }
}
