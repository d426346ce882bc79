//! The work on the copies of a cluster.

use crate::replicas::cluster::Cluster;
use ombak_repair::Repair;

/// What a cluster does with copies that do not lie where they belong.
pub trait Work {
    /// Starts the work that brings copies back to where they belong.
    fn start_transfers(&self);

    /// Starts the rounds that remove tombstones and expired versions.
    fn start_reaping(&self);

    /// Waits until every node is settled.
    async fn wait_until_settled(&self);
}

impl Work for Cluster {
    fn start_transfers(&self) {
        self.nodes.iter().for_each(|node| Repair::of(node).start_transfers());
    }

    fn start_reaping(&self) {
        self.nodes.iter().for_each(|node| Repair::of(node).start_reaping());
    }

    async fn wait_until_settled(&self) {
        let all = || self.nodes.iter().all(|node| Repair::of(node).settled().is_settled());
        self.wait_until("everything lies where it belongs", all).await;
    }
}
