//! A process that follows the log of [`super::decided`], as a member follows its metadata
//! (docs/design/ring-changes.md, "Adopting").

use super::decided::{Decided, DecidedState};
use crate::world::{HostId, HostRuntime};
use ombak_kv::Kv;
use ombak_ring::placement::Placement;
use std::sync::Arc;

/// What one process needs to follow the log. Clones share everything.
#[derive(Clone)]
pub(crate) struct Follower {
    decided: Decided,
    host: HostId,
    kv: Kv,
    runtime: Arc<HostRuntime>,
    /// Locked while a state is adopted.
    adopting: Arc<tokio::sync::Mutex<()>>,
}

impl Follower {
    pub(crate) fn new(decided: Decided, host: HostId, kv: Kv, runtime: Arc<HostRuntime>) -> Self {
        Self { decided, host, kv, runtime, adopting: Arc::default() }
    }

    /// The state that this process follows.
    pub(crate) fn followed(&self) -> Option<Arc<DecidedState>> {
        self.decided.followed_by(self.host)
    }

    /// Puts a state in force if it is newer than what the process follows.
    pub(crate) async fn adopt(&self, state: Arc<DecidedState>) {
        let _adopting = self.adopting.lock().await;
        let is_known = self.followed().is_some_and(|followed| followed.index >= state.index);
        if is_known || !self.runtime.is_alive() {
            return;
        }
        let is_newer = self.kv.placement_version() < state.placement.version();
        if is_newer && !self.put_in_force(&state.placement).await {
            return;
        }
        if self.runtime.is_alive() {
            self.decided.follows(self.host, state);
        }
    }

    /// Whether it was done.
    async fn put_in_force(&self, placement: &Arc<Placement>) -> bool {
        self.kv.prepare_placement(placement).await.is_ok()
            && self.kv.directory().save_placement(&**placement).is_ok()
            && self.kv.set_placement((**placement).clone()).is_ok()
    }
}
