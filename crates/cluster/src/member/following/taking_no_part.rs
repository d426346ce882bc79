//! What a node does when its directory turns out to be an older copy, or when it was removed
//! (docs/design/replication.md §8).
//!
//! What it is not: it does not judge the directory (`directory_age`).

use super::state::Following;
use ombak_kv::FillReason;
use ombak_runtime::RuntimeExt;
use std::sync::Arc;
use std::time::Duration;
use tracing::error;

/// How often a node that takes no part says so.
const TELL_INTERVAL: Duration = Duration::from_secs(2);

impl Following {
    /// Ends all work of this node for clients and members. The process goes on, so that operators
    /// see why.
    pub async fn take_no_part(self: &Arc<Self>, why: &str) {
        let _adopting = self.adopting.lock().await;
        self.kv().refuse_requests(self.own_directory.no_part());
        let is_removed = self.own_directory.is_removed();
        if !self.has_left_in_order() {
            error!("{}", self.own_directory.text(why));
        }
        self.logs.slot.store(None);
        self.metadata_node().stop().await;
        self.close_to_writes().await;
        self.node.withdraw();
        self.repair().set_handoff(false, false);
        let kv = self.kv().clone();
        let noted = self.blocking(move || match is_removed {
            true => (kv.directory().note_removed(), true),
            false => (kv.directory().note_restored(), kv.set_all_filling(FillReason::Restored)),
        });
        match noted.await {
            Ok((Ok(()), true)) => {}
            Ok((Err(error), _)) => error!(%error, "that could not be noted in node.json: stop the node"),
            Ok((Ok(()), false)) | Err(_) => error!("that could not be noted in replicas.json: stop the node"),
        }
        if is_removed {
            return self.end_leave();
        }
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            while !this.is_stopping() {
                this.own_directory.tell_all().await;
                this.runtime.sleep(TELL_INTERVAL).await;
            }
        }));
    }
}
