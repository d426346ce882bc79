//! Notices that this node was paused, and asks the other members what they hold for it.

use super::messages::{decode_holdings, encode_holdings_question};
use super::service::HOLDINGS;
use futures_util::future::join_all;
use ombak_kv::{Kv, PauseNumber, Peers as _};
use ombak_peer::frame::Priority;
use ombak_peer::{Lane, Outgoing, Peers, RingVersion};
use ombak_runtime::{Runtime, RuntimeExt, within};
use ombak_types::NodeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::info;

/// How often the watcher looks at the clock.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a node asks, at most: so long requests wait for it.
const ASK_MAX: Duration = Duration::from_secs(1);
/// The time between two questions to a member that still holds something.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// How long a member that cannot be reached is tried. Connections that ended during the pause are
/// opened anew, after a short while.
const UNREACHABLE_MAX: Duration = Duration::from_millis(400);

/// What the watcher of a node needs.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) kv: Kv,
    pub(crate) transport: Peers,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) peers: Arc<crate::peer_table::ClusterPeers>,
}

/// Watches a node until `is_stopped`.
pub(crate) async fn watch(watch: Watch, is_stopped: Arc<AtomicBool>) {
    while !is_stopped.load(Ordering::SeqCst) {
        if let Some(pause) = watch.kv.look_for_pause() {
            let asks = watch.clone();
            watch.runtime.spawn(Box::pin(asks.wake_up(pause)));
        }
        watch.runtime.sleep(LOOK_INTERVAL).await;
    }
    watch.kv.is_not_watched();
}

impl Watch {
    /// Waits until no member holds anything for this node, and lets its requests go on.
    async fn wake_up(self, pause: PauseNumber) {
        let until = self.runtime.now() + ASK_MAX;
        info!("this node was paused, and asks the other members what they hold for it");
        let members = self.peers.members().into_iter().map(|member| member.id);
        let asked: Vec<NodeId> = members.filter(|node| self.peers.is_up(*node)).collect();
        let told = join_all(asked.into_iter().map(|node| self.ask(node, until)));
        // After that, requests go on in any case.
        let _ = within(&*self.runtime, Some(until), told).await;
        self.kv.is_awake(pause);
    }

    /// Asks a member until it holds nothing for this node, or cannot be asked.
    async fn ask(&self, node: NodeId, until: Instant) {
        let unreachable_until = self.runtime.now() + UNREACHABLE_MAX;
        loop {
            // An earlier version of the program cannot tell. What is not connected says nothing of
            // itself.
            if self.transport.live_session(node).is_some() && !self.transport.shares(node, HOLDINGS.capability) {
                return;
            }
            let outgoing = Outgoing {
                lane: Lane::Requests,
                service: HOLDINGS.number,
                priority: Priority::Control,
                ring: RingVersion::default(),
                age: Duration::ZERO,
                deadline: until,
                body: encode_holdings_question(),
            };
            match self.transport.call(node, outgoing).await {
                Ok(answer) if decode_holdings(&answer) == Ok(true) => {}
                Ok(_) => return,
                Err(_) if self.runtime.now() >= unreachable_until => return,
                Err(_) => {}
            }
            self.runtime.sleep(ASK_AGAIN).await;
        }
    }
}
