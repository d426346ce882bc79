//! The failure detector of a node that runs.

use super::probe::RequestProbe;
use super::transport::PacketTransport;
use arc_swap::ArcSwapOption;
use ombak_failure_detection::{
    ClassSet, DetectionConfig, FailureDetector, FailureDetectorParts, HealthConfig, InvalidTimes, LivenessTable,
    PeersView, Process, RingVersionKnown, SoftState, StartError,
};
use ombak_kv::{ClassId, FillReason, Kv};
use ombak_peer::{NodeIdentity, Peers};
use ombak_runtime::{Published, Runtime, RuntimeExt};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tracing::error;

/// How often a node looks whether what it tells the others has changed.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// The times of failure detection and of request health.
#[derive(Clone, Debug, Default)]
pub struct Detection {
    /// Failure detection.
    pub detector: DetectionConfig,
    /// The health of requests.
    pub health: HealthConfig,
}

impl Detection {
    /// The times that an operator sets; the others follow from them.
    pub fn with_times(
        probe_period: Duration,
        suspicion: Duration,
        request_stall: Duration,
    ) -> Result<Self, InvalidTimes> {
        let detector =
            DetectionConfig { probe_period, probe_rtt: probe_period * 3 / 7, suspicion, ..DetectionConfig::default() };
        let health = HealthConfig {
            slow_after: request_stall,
            stall_max: request_stall,
            probe_limit: request_stall,
            ..HealthConfig::default()
        };
        detector.check()?;
        health.check()?;
        Ok(Self { detector, health })
    }
}

/// The failure detector of a node, once it runs. Services are opened before there is one.
pub(crate) type FailureDetectorSlot = Arc<ArcSwapOption<FailureDetector>>;

/// Starts the failure detector over a transport that runs.
pub(crate) fn start(
    detection: Detection,
    liveness: Arc<LivenessTable>,
    identity: &NodeIdentity,
    kv: &Kv,
    runtime: &Arc<dyn Runtime>,
    transport: &Peers,
) -> Result<Arc<FailureDetector>, StartError> {
    let failure_detector = Arc::new(FailureDetector::start(FailureDetectorParts {
        runtime: Arc::clone(runtime),
        transport: Arc::new(PacketTransport::new(Arc::clone(runtime), transport.clone())),
        probe: Arc::new(RequestProbe { runtime: Arc::clone(runtime), transport: transport.clone() }),
        me: Process::new(identity.node, identity.boot_number, identity.session),
        config: detection.detector,
        health: detection.health,
        liveness,
    })?);
    let telling = tell(Arc::downgrade(&failure_detector), kv.clone(), Arc::clone(runtime));
    runtime.spawn(Box::pin(telling));
    runtime.spawn(Box::pin(heed_later_start(failure_detector.published().clone(), kv.clone())));
    Ok(failure_detector)
}

/// Tells the others about this node until the failure detector is gone.
async fn tell(failure_detector: Weak<FailureDetector>, kv: Kv, runtime: Arc<dyn Runtime>) {
    while let Some(strong) = failure_detector.upgrade() {
        strong.publish(state_of(&kv));
        drop(strong);
        runtime.sleep(TELL_INTERVAL).await;
    }
}

/// What a node tells about itself. A replica that is not full also says so when it is asked.
fn state_of(kv: &Kv) -> SoftState {
    let ring = kv.ring().version();
    let place = |class: ClassId| Some((class.partition, u8::try_from(class.n).ok()?));
    let filling = kv.filling_classes().into_iter().filter_map(|(class, _)| place(class)).collect();
    let mut owed: BTreeMap<NodeId, BTreeSet<(u32, u8)>> = BTreeMap::new();
    for (class, peer) in kv.owed_marks() {
        owed.entry(peer).or_default().extend(place(class));
    }
    SoftState {
        ring: RingVersionKnown { lineage: ring.lineage, number: ring.number },
        avoids_coverage: !kv.participates_in_coverage(),
        filling: ClassSet::Listed(filling),
        owed: owed.into_iter().map(|(peer, classes)| (peer, ClassSet::Listed(classes))).collect(),
        foreign_bytes: kv.foreign_by_owner().into_iter().map(|(owner, amount)| (owner, amount.bytes)).collect(),
        ..SoftState::default()
    }
}

/// Waits until a peer knows of a later start of this node's directory. Then the directory is an old
/// copy, and what its replicas lack may be anything (docs/design/replication.md §8).
async fn heed_later_start(views: Arc<Published<Arc<PeersView>>>, kv: Kv) {
    if views.wait_for(|view| view.later_boot_number.is_some()).await.is_none() {
        return;
    }
    let noted = kv.clone().offload(move || kv.set_all_filling(FillReason::Restored)).await;
    if noted != Ok(true) {
        error!("this node's directory is an old copy, and that could not be noted: stop the node");
    }
}
