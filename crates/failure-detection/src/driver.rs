//! Runs failure detection and the health of requests over a runtime and a transport.

use crate::config::{DetectionConfig, InvalidTimes};
use crate::core::{Change, DetectionCore, Effects};
use crate::health::{HealthConfig, RequestHealth};
use crate::liveness::LivenessTable;
use crate::local_clock::LocalClock;
use crate::process::Process;
use crate::soft_state::SoftState;
use crate::transport::{DetectionTransport, HealthProbe};
use crate::view::PeersView;
use ombak_runtime::{NoRandomBytes, Published, Runtime, RuntimeExt, within};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What a failure detector is made of.
pub struct FailureDetectorParts {
    /// Time, randomness and tasks.
    pub runtime: Arc<dyn Runtime>,
    /// Sends packets.
    pub transport: Arc<dyn DetectionTransport>,
    /// Asks a node over the path of requests.
    pub probe: Arc<dyn HealthProbe>,
    /// This node's process.
    pub me: Process,
    /// The times of failure detection.
    pub config: DetectionConfig,
    /// The times of request health.
    pub health: HealthConfig,
    /// Is told which members are up for requests. It was made with the same times.
    pub liveness: Arc<LivenessTable>,
}

/// Why a failure detector did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Times(#[from] InvalidTimes),
    /// There are no random bytes.
    #[error(transparent)]
    NoRandomBytes(#[from] NoRandomBytes),
}

/// The failure detector of one node. It is cheap to clone, and runs until
/// [`FailureDetector::stop`].
#[derive(Clone)]
pub struct FailureDetector {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: Arc<dyn Runtime>,
    transport: Arc<dyn DetectionTransport>,
    probe: Arc<dyn HealthProbe>,
    health_config: HealthConfig,
    me: NodeId,
    began: Instant,
    state: Mutex<State>,
    liveness: Arc<LivenessTable>,
    view: Arc<Published<Arc<PeersView>>>,
    /// Wakes the task when something has become due earlier.
    wake: Notify,
    is_stopped: AtomicBool,
}

struct State {
    core: DetectionCore,
    /// The members that the detector calls up.
    health: BTreeMap<NodeId, RequestHealth>,
    health_clock: LocalClock,
    next_look: Duration,
}

impl FailureDetector {
    /// Starts without members.
    pub fn start(parts: FailureDetectorParts) -> Result<Self, StartError> {
        parts.config.check()?;
        parts.health.check()?;
        let seed = parts.runtime.random_u64()?;
        let state = State {
            health_clock: LocalClock::new(parts.config.late_after),
            core: DetectionCore::new(parts.me, parts.config, seed),
            health: BTreeMap::new(),
            next_look: Duration::ZERO,
        };
        let inner = Arc::new(Inner {
            began: parts.runtime.now(),
            runtime: parts.runtime,
            transport: parts.transport,
            probe: parts.probe,
            liveness: parts.liveness,
            health_config: parts.health,
            me: parts.me.node,
            state: Mutex::new(state),
            view: Arc::default(),
            wake: Notify::new(),
            is_stopped: AtomicBool::new(false),
        });
        inner.runtime.spawn(Box::pin(run(Arc::downgrade(&inner), Arc::clone(&inner.runtime))));
        Ok(Self { inner })
    }

    /// Replaces the list of members, of which this node may be one. Only members are probed, and
    /// only members are believed.
    pub fn set_members(&self, members: BTreeSet<NodeId>) {
        let me = self.inner.me;
        self.inner.liveness.set_members(members.iter().copied().filter(|node| *node != me));
        self.inner.step(|core, now| core.set_members(now, members));
    }

    /// Sets what this node tells the others. It is cheap to call often: the others hear of a change
    /// at most once in [`DetectionConfig::state_interval`].
    pub fn publish(&self, state: SoftState) {
        self.inner.step(|core, now| core.publish(now, state));
    }

    /// Takes a packet that arrived. The transport has proved that it comes from `from`.
    pub fn receive(&self, from: NodeId, packet: &[u8]) {
        self.inner.step(|core, now| core.receive(now, from, packet));
    }

    /// Which members are up for requests. Each request asks this table, and tells it what the
    /// request came to.
    pub fn liveness(&self) -> &Arc<LivenessTable> {
        &self.inner.liveness
    }

    /// What is known about the other members now.
    pub fn view(&self) -> Arc<PeersView> {
        self.inner.view.get()
    }

    /// What is known about the other members, for those who wait for a change. A slow follower
    /// misses intermediate views, and sees by [`PeerView::times_up`](crate::PeerView::times_up)
    /// that a peer came up meanwhile. It ends when the failure detector stops.
    pub fn published(&self) -> &Arc<Published<Arc<PeersView>>> {
        &self.inner.view
    }

    /// Tells the others that this node stops, and stops.
    pub fn leave(&self) {
        self.inner.step(|core, now| core.leave(now));
        self.stop();
    }

    /// Stops without a word. The others take this node for dead after a while.
    pub fn stop(&self) {
        self.inner.is_stopped.store(true, Ordering::SeqCst);
        self.inner.view.end();
        self.inner.wake.notify_one();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.view.end();
    }
}

/// Does what is due until the failure detector stops, or nobody has it any more.
async fn run(inner: Weak<Inner>, runtime: Arc<dyn Runtime>) {
    loop {
        let Some(strong) = inner.upgrade() else { return };
        if strong.is_stopped.load(Ordering::SeqCst) {
            return;
        }
        let due = strong.tick();
        // The task must not keep the failure detector alive while it sleeps for long, but it never
        // does: something is due within one announcement interval.
        let _ = within(&*runtime, Some(strong.began + due), strong.wake.notified()).await;
    }
}

impl Inner {
    fn now(&self) -> Duration {
        self.runtime.now().saturating_duration_since(self.began)
    }

    fn step(&self, step: impl FnOnce(&mut DetectionCore, Duration)) {
        let now = self.now();
        let mut state = self.state.lock();
        let due = state.core.next_due();
        step(&mut state.core, now);
        let is_earlier = state.core.next_due() < due;
        self.apply(&mut state, now);
        drop(state);
        if is_earlier {
            self.wake.notify_one();
        }
    }

    /// Does what is due, and says when something is due again.
    fn tick(self: &Arc<Self>) -> Duration {
        let now = self.now();
        let mut state = self.state.lock();
        if now >= state.core.next_due() {
            state.core.tick(now);
            self.apply(&mut state, now);
        }
        self.look_at_requests(&mut state, now);
        state.core.next_due().min(state.health_clock.reading_at(state.next_look))
    }

    /// Sends packets and spreads changes, in the order of the core's steps: the caller holds the
    /// lock.
    fn apply(&self, state: &mut State, now: Duration) {
        let Effects { packets, changes, view_changed } = state.core.take_effects();
        if !self.is_stopped.load(Ordering::SeqCst) {
            packets.into_iter().for_each(|(to, packet)| self.transport.send(to, packet));
        }
        for change in changes {
            self.note(state, now, change);
        }
        if view_changed {
            let view = state.core.view();
            state.health.retain(|node, _| view.is_up(*node));
            self.view.set(Arc::new(view.clone()));
        }
    }

    fn note(&self, state: &mut State, now: Duration, change: Change) {
        match change {
            Change::Up(process) => {
                tracing::info!(peer = %process.node, boot_number = process.boot_number, "a peer is up");
                let local = state.health_clock.read(now, Some(state.next_look));
                let seen = self.liveness.traffic(process.node).unwrap_or_default();
                state.health.insert(process.node, RequestHealth::new(local, seen));
                self.liveness.set_healthy(process.node, true);
                self.liveness.set_detected(process.node, true);
            }
            Change::Down(node) => {
                tracing::warn!(peer = %node, "a peer is down");
                self.liveness.set_detected(node, false);
            }
            Change::Left(node) => {
                tracing::info!(peer = %node, "a peer has stopped");
                self.liveness.set_detected(node, false);
            }
            Change::LaterBoot(boot_number) => {
                tracing::error!(boot_number, "peers know a later start of this node: its directory is an old copy");
            }
            Change::Told(_) => {}
        }
    }

    /// Looks at the counters of requests, and begins probes.
    fn look_at_requests(self: &Arc<Self>, state: &mut State, now: Duration) {
        let local = state.health_clock.read(now, Some(state.next_look));
        if local < state.next_look {
            return;
        }
        state.next_look = local + self.health_config.tick;
        for (node, health) in &mut state.health {
            let Some(totals) = self.liveness.traffic(*node) else { continue };
            let step = health.look(&self.health_config, local, totals);
            if let Some(is_healthy) = step.changed_to {
                self.set_healthy(*node, is_healthy);
            }
            if step.probe {
                self.runtime.spawn(Box::pin(Arc::clone(self).probe(*node)));
            }
        }
    }

    async fn probe(self: Arc<Self>, node: NodeId) {
        let limit = self.runtime.now() + self.health_config.probe_limit;
        let is_good = within(&*self.runtime, Some(limit), self.probe.probe(node)).await.unwrap_or(false);
        let now = self.now();
        let mut state = self.state.lock();
        let State { health, health_clock, next_look, .. } = &mut *state;
        let local = health_clock.read(now, Some(*next_look));
        let Some(health) = health.get_mut(&node) else { return };
        if health.probed(&self.health_config, local, is_good) {
            self.set_healthy(node, true);
        }
    }

    fn set_healthy(&self, node: NodeId, is_healthy: bool) {
        if is_healthy {
            tracing::info!(peer = %node, "a peer answers requests again");
        } else {
            tracing::warn!(peer = %node, "a peer does not answer requests, and is down for them");
        }
        self.liveness.set_healthy(node, is_healthy);
    }
}
