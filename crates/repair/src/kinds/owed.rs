//! Pushes what peers of a class missed.

use super::{Kind, Look, Outcome, Place};
use ombak_runtime::BoxFuture;

pub(super) struct Owed;

impl Kind for Owed {
    fn name(&self) -> &'static str {
        "owed"
    }

    fn due(&self, look: &Look<'_>) -> Vec<Place> {
        if !look.gives_pushes {
            return Vec::new();
        }
        let owed = look.host.transfers().owed.list().into_iter().filter(|owed| {
            let home = look.placement.home(owed.class.partition);
            let primaries = home.primaries(owed.class.n);
            // The proof brings a new member what is owed, too, and shares the work with others.
            let is_new = !home.replica_set(owed.class.n).contains(&owed.peer);
            let is_proved_first = is_new && look.proofs.contains(&(owed.class, owed.peer));
            look.up.contains(&owed.peer)
                && primaries.contains(&owed.peer)
                && primaries.contains(&look.here)
                && !is_proved_first
        });
        owed.map(|owed| Place::Peer(owed.class, owed.peer)).collect()
    }

    fn begin(&self, look: &Look<'_>, place: Place) -> BoxFuture<'static, Outcome> {
        let (work, host) = (look.work.clone(), look.host.clone());
        Box::pin(async move {
            let Place::Peer(class, peer) = place else { return Outcome::Done };
            work.pay(&host, class, peer).await.into()
        })
    }
}
