//! The times of runs, and of the members in them. Those of members are longer than the defaults,
//! because each packet costs a run processor time.

use ombak_cluster::{Detection, MemberTiming};
use ombak_failure_detection::DetectionConfig;
use ombak_kv::ScrubConfig;
use ombak_metadata::Timing;
use ombak_repair::ExchangeConfig;
use std::time::Duration;

/// The virtual time that a run may take.
pub(crate) const RUN_LIMIT: Duration = Duration::from_secs(3_600);
/// How often nodes look which others answer.
pub(crate) const DETECT_INTERVAL: Duration = Duration::from_millis(500);
/// How long delayed messages may still arrive after healing.
pub(crate) const CALM: Duration = Duration::from_secs(9);

/// The times of failure detection.
pub(crate) fn detection() -> Detection {
    let detector = DetectionConfig {
        probe_period: Duration::from_secs(1),
        probe_rtt: Duration::from_millis(400),
        suspicion: Duration::from_millis(1_400),
        gossip_interval: Duration::from_secs(1),
        announce_interval: Duration::from_secs(1),
        state_interval: Duration::from_secs(2),
        state_retry: Duration::from_secs(1),
        ..DetectionConfig::default()
    };
    Detection { detector, ..Detection::default() }
}

/// The times of metadata.
pub(crate) fn members() -> MemberTiming {
    let metadata = Timing {
        heartbeat: Duration::from_secs(2),
        election: (Duration::from_secs(6), Duration::from_secs(12)),
        maintenance: Duration::from_secs(5),
        ..Timing::default()
    };
    let steady = MemberTiming::default();
    // A change that takes long meets more faults.
    MemberTiming { metadata, ring_round_min: steady.ring_round, ..steady }
}

/// The pace of exchanges, and of the checks of sums. Marks have to advance several times while
/// faults last.
pub(crate) fn exchanges() -> ExchangeConfig {
    ExchangeConfig {
        interval: Duration::from_secs(15),
        bytes_per_second: 0,
        check_sums_every: Duration::from_secs(20),
        ..ExchangeConfig::default()
    }
}

/// The pace of scrubbing: a round a minute, which is the shortest that there is. The nemesis begins
/// further ones.
pub(crate) const fn scrubbing() -> ScrubConfig {
    ScrubConfig { is_enabled: true, interval: Duration::from_secs(60), bytes_per_second_max: 0 }
}
