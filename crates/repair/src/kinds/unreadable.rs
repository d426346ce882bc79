//! Repairs what this node cannot read.

use super::{Kind, Lane, Look, Outcome, Place};
use ombak_runtime::BoxFuture;

pub(super) struct Unreadable;

impl Kind for Unreadable {
    fn name(&self) -> &'static str {
        "unreadable"
    }

    fn lane(&self) -> Lane {
        Lane::WaitsForOthers
    }

    fn due(&self, look: &Look<'_>) -> Vec<Place> {
        let keys = look.host.partitions().unreadable_keys();
        let is_due = !keys.due(look.work.runtime.now(), 1).is_empty();
        is_due.then_some(Place::Node).into_iter().collect()
    }

    fn begin(&self, look: &Look<'_>, _: Place) -> BoxFuture<'static, Outcome> {
        let (work, host) = (look.work.clone(), look.host.clone());
        Box::pin(async move {
            work.repair_unreadable(&host).await;
            Outcome::Done
        })
    }
}
