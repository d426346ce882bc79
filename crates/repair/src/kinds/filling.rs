//! Compares classes that may lack something with the other primaries.

use super::{Kind, Lane, Look, Outcome, Place};
use ombak_kv::ClassId;
use ombak_kv::repair_host::is_to_be_full;
use ombak_runtime::BoxFuture;
use ombak_types::Error;

pub(super) struct Filling;

impl Kind for Filling {
    fn name(&self) -> &'static str {
        "filling"
    }

    fn lane(&self) -> Lane {
        Lane::WaitsForOthers
    }

    fn due(&self, look: &Look<'_>) -> Vec<Place> {
        let mut due = Vec::new();
        if !look.gives_pushes || !look.work.takes_pushes() {
            // A comparison brings copies in both directions.
            return due;
        }
        for home in look.placement.homes() {
            let partition = home.home();
            let Some(filling) = look.host.transfers().classes.filling(partition) else { continue };
            for n in look.ns.iter().filter(|n| !filling.full.contains(n)) {
                if is_to_be_full(&home, look.here, *n) {
                    due.push(Place::Class(ClassId { partition, n: *n }));
                }
            }
        }
        due
    }

    fn begin(&self, look: &Look<'_>, place: Place) -> BoxFuture<'static, Outcome> {
        let (work, host) = (look.work.clone(), look.host.clone());
        Box::pin(async move {
            let Place::Class(class) = place else { return Outcome::Done };
            match work.fill(&host, class).await {
                Ok(open) if open.is_empty() => Outcome::Done,
                Ok(_) => Outcome::Failed(Error::AllNodesDown),
                Err(why) => Outcome::Failed(why),
            }
        })
    }
}
