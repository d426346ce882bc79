//! Proves classes of changing homes to the members of their new sets.

use super::{Kind, Lane, Look, Outcome, Place};
use crate::prove::Proving;
use ombak_runtime::BoxFuture;

pub(super) struct Proofs;

impl Kind for Proofs {
    fn name(&self) -> &'static str {
        "proof"
    }

    /// Many homes are proved for long. Hints and marks have a place beside them.
    fn lane(&self) -> Lane {
        Lane::Long
    }

    fn due(&self, look: &Look<'_>) -> Vec<Place> {
        let proofs = look.proofs.iter().filter(|(_, to)| look.up.contains(to));
        proofs.map(|(class, to)| Place::Peer(*class, *to)).collect()
    }

    fn begin(&self, look: &Look<'_>, place: Place) -> BoxFuture<'static, Outcome> {
        let (work, host) = (look.work.clone(), look.host.clone());
        Box::pin(async move {
            let Place::Peer(class, node) = place else { return Outcome::Done };
            match work.prove(&host, class, node).await {
                Ok(Proving::Proved) => Outcome::Done,
                Ok(Proving::WaitsForOthers) => Outcome::LeftToOthers,
                Err(why) => Outcome::Failed(why),
            }
        })
    }
}
