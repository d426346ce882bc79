//! The times of failure detection of a node, as it tells them to the others.

use crate::Detection;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The times of failure detection of a node, as its configuration sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectionTimes {
    /// How often it asks whether another node is there, in milliseconds.
    pub probe_period_ms: u64,
    /// How long a node that did not answer may take to show that it is there, in milliseconds.
    pub suspicion_ms: u64,
}

impl From<&Detection> for DetectionTimes {
    fn from(detection: &Detection) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self { probe_period_ms: ms(detection.detector.probe_period), suspicion_ms: ms(detection.detector.suspicion) }
    }
}
