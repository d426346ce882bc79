//! Questions of features to all nodes.

use crate::coverage::{FeatureAnswersOfNodes, Planner, ask_feature};
use crate::engine::Kv;
use crate::requests::MemoryReservation;
use bytes::Bytes;
use ombak_types::Error;
use std::time::Instant;

/// What [`Kv::ask_feature`] asks.
#[derive(Clone, Debug)]
pub struct FeatureRequest {
    /// The name of the feature.
    pub name: &'static str,
    /// What is asked.
    pub content: Bytes,
    /// The n_val of the objects that the question is about.
    pub n_val: u32,
    /// The home partitions to ask about; `None` for all.
    pub homes: Option<Vec<u32>>,
    /// How often the question waits 100 ms for nodes that cannot answer yet.
    pub waits_max: u32,
    /// When nobody needs the answer any more.
    pub deadline: Option<Instant>,
}

impl Kv {
    /// Asks a feature of the nodes, each for some home partitions. Each home partition is asked of
    /// a replica that is full; of another one, if the first fails or cannot answer. Those for which
    /// nobody answers are named.
    ///
    /// What the nodes send is reserved in `room` as it comes.
    pub async fn ask_feature(
        &self,
        request: FeatureRequest,
        room: &mut dyn MemoryReservation,
    ) -> Result<FeatureAnswersOfNodes, Error> {
        self.engine.check_open()?;
        let FeatureRequest { name, content, n_val, homes, waits_max, deadline } = request;
        let planner = Planner::new(self.engine.clone(), deadline)?.waiting_at_most(waits_max);
        let homes = homes.unwrap_or_else(|| (0..planner.homes()).collect());
        ask_feature(planner, (name, content), (n_val, homes), room).await
    }
}
