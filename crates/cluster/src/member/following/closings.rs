//! What is closed to writes while a change needs that, and how a closing ends.
//!
//! Only the metadata ends a closing. A member that opened by itself could take writes before the
//! entry of the change takes effect late (`ring_change::closing`).

use super::state::Following;
use crate::member::questions::question::Place;
use ombak_kv::Holdings;
use ombak_metadata::state::{ClosedPart, Command, Metadata};
use ombak_runtime::RuntimeExt;
use ombak_types::{Bucket, ShownKey, ShownName};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::{info, warn};

impl Following {
    /// Closes the bucket or type that a change of its properties needs closed, and opens it when
    /// the metadata has decided so. The properties of the state are in force by then.
    pub(super) async fn adopt_closed_part(&self, state: &Metadata) {
        let part = state.closed_part().map(|part| match part.clone() {
            ClosedPart::Type(name) => Place::Type(name),
            ClosedPart::Bucket(bucket) => Place::Bucket(bucket),
        });
        let closing = state.closing().filter(|_| part.is_some());
        if self.part_closing.swap(closing.unwrap_or(0), Ordering::SeqCst) == closing.unwrap_or(0) {
            return;
        }
        let Some(part) = part.map(Holdings::from) else { return self.kv().open_part_to_writes() };
        let (kv, again) = (self.kv().clone(), part.clone());
        if self.blocking(move || kv.close_part_to_writes(&part)).await.is_err() {
            self.kv().close_part_to_writes(&again);
        }
    }

    /// Takes no writes of clients any more. Returns when all that began before have ended.
    pub async fn close_to_writes(&self) {
        let kv = self.kv().clone();
        if self.blocking(move || kv.close_to_writes()).await.is_err() {
            self.kv().close_to_writes();
        }
    }

    /// Ends a closing whose driver does not go on. The metadata decides in which order that and the
    /// change of the driver come, so the cluster never changes after it was opened.
    pub(super) fn watch_closing(self: &Arc<Self>, last: &Metadata, state: &Metadata) {
        let Some(closing) = state.closing().filter(|closing| last.closing() != Some(*closing)) else { return };
        match state.closed_part() {
            None => info!("the cluster takes no writes while it changes"),
            Some(ClosedPart::Type(name)) => {
                info!(bucket_type = %ShownName(&name.0), "a bucket type takes no writes while its properties change");
            }
            Some(ClosedPart::Bucket(part)) => {
                let part = Bucket { bucket_type: part.r#type.clone(), name: part.name.clone() };
                let ShownKey { bucket_type, bucket, .. } = ShownKey::of_bucket(&part);
                info!(%bucket_type, %bucket, "a bucket takes no writes while its properties change");
            }
        }
        // A node that stops meanwhile is not held.
        let (node, runtime, closing_max) = (Arc::downgrade(self), self.runtime.clone(), self.timing.closing_max);
        self.runtime.spawn(Box::pin(async move {
            runtime.sleep(closing_max).await;
            let Some(this) = node.upgrade() else { return };
            while !this.is_stopping() && this.followed.get().metadata.closing() == Some(closing) {
                let deadline = this.command_deadline();
                match this.metadata_node().propose(Command::OpenWrites { closing }, deadline).await {
                    Ok(_) => warn!("a change that needs closed writes was not finished in time; they are open again"),
                    Err(why) => warn!(%why, "what is closed to writes stays closed, and this is tried again"),
                }
                this.runtime.sleep(this.timing.metadata.heartbeat).await;
            }
        }));
    }
}
