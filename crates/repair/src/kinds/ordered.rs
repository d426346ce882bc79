//! Pushes what other nodes have ordered.

use super::{Kind, Look, Outcome, Place};
use ombak_runtime::BoxFuture;

pub(super) struct Ordered;

impl Kind for Ordered {
    fn name(&self) -> &'static str {
        "ordered"
    }

    fn due(&self, look: &Look<'_>) -> Vec<Place> {
        if !look.gives_pushes {
            return Vec::new();
        }
        let open = look.work.orders.open().into_iter().filter(|(_, to)| look.up.contains(to));
        open.map(|(class, to)| Place::Peer(class, to)).collect()
    }

    fn begin(&self, look: &Look<'_>, place: Place) -> BoxFuture<'static, Outcome> {
        let (work, host) = (look.work.clone(), look.host.clone());
        Box::pin(async move {
            let Place::Peer(class, to) = place else { return Outcome::Done };
            work.carry_out(&host, class, to).await.into()
        })
    }
}
