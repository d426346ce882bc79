//! The failure detector: foca, fed with time, with packets and with the list of members.

use crate::codec::{Arrived, PacketCodec};
use crate::config::DetectionConfig;
use crate::evidence::Evidence;
use crate::process::Process;
use crate::reader::Malformed;
use crate::timers::Timers;
use foca::{AccumulatingRuntime, Foca, Member, NoCustomBroadcast, PeriodicParams, State};
use ombak_types::NodeId;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

/// The longest message of foca. News that do not fit travel in a later one.
const MESSAGE_BYTES_MAX: usize = 1400;
/// How often a piece of news is passed on by each node.
const TRANSMISSIONS_MAX: u8 = 10;
/// To how many nodes news are passed on each time.
const GOSSIP_TO: usize = 3;

/// What the detector thinks of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opinion {
    pub(crate) process: Process,
    pub(crate) is_suspect: bool,
}

/// Foca with the members that it may know.
pub(crate) struct Detector {
    foca: Foca<Process, PacketCodec, Xoshiro256PlusPlus, NoCustomBroadcast>,
    runtime: AccumulatingRuntime<Process>,
    timers: Timers<foca::Timer<Process>>,
    members: BTreeSet<NodeId>,
    evidence: Evidence,
    evidence_for: Duration,
}

impl Detector {
    pub(crate) fn new(me: Process, config: &DetectionConfig, seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            foca: Foca::new(me, foca_config(config), rng, PacketCodec),
            runtime: AccumulatingRuntime::new(),
            timers: Timers::new(),
            members: BTreeSet::new(),
            evidence: Evidence::default(),
            evidence_for: config.suspicion,
        }
    }

    /// This node, with the number of times that it came back.
    pub(crate) fn me(&self) -> Process {
        *self.foca.identity()
    }

    pub(crate) fn is_member(&self, node: NodeId) -> bool {
        self.members.contains(&node)
    }

    /// The other members.
    pub(crate) fn members(&self) -> &BTreeSet<NodeId> {
        &self.members
    }

    /// The latest process of a member that this node has heard of.
    pub(crate) fn known_process(&self, node: NodeId) -> Option<Process> {
        let told = self.foca.iter_membership_state().map(Member::id).find(|process| process.node == node);
        told.copied().max(self.evidence.process(node))
    }

    /// The members that are up.
    pub(crate) fn opinions(&self) -> BTreeMap<NodeId, Opinion> {
        let opinion =
            |member: &Member<Process>| Opinion { process: *member.id(), is_suspect: member.state() == State::Suspect };
        self.foca.iter_members().map(|member| (member.id().node, opinion(member))).collect()
    }

    /// Replaces the list of the other members. Whoever is not in it any more is forgotten.
    pub(crate) fn set_members(&mut self, now: Duration, members: BTreeSet<NodeId>) {
        let me = self.me().node;
        self.members = members.into_iter().filter(|node| *node != me).collect();
        let known = self.foca.iter_membership_state().map(Member::id);
        let gone: Vec<Process> = known.filter(|process| !self.members.contains(&process.node)).copied().collect();
        for process in gone {
            self.declare_down(now, process);
            self.evidence.forget(process.node);
            self.run(now, |foca, runtime| foca.handle_timer(foca::Timer::RemoveDown(process), runtime));
        }
    }

    /// Notes that a process is gone, without a suspicion.
    pub(crate) fn declare_down(&mut self, now: Duration, process: Process) {
        let down = Member::new(process, foca::Incarnation::MAX, State::Down);
        self.evidence.forget(process.node);
        self.run(now, |foca, runtime| foca.apply_many(std::iter::once(down), true, runtime));
    }

    /// Calls a member that is not up for this node.
    pub(crate) fn announce_to(&mut self, now: Duration, node: NodeId) {
        let process = self.known_process(node).unwrap_or(Process::any_of(node));
        self.run(now, |foca, runtime| foca.announce(process, runtime));
    }

    /// Notes a packet of a member, whatever it is about.
    pub(crate) fn heard(&mut self, now: Duration, process: Process) {
        self.evidence.heard(process, now);
    }

    /// Takes a message of a member. Nothing about nodes that are not members reaches foca, nor that
    /// a node is dead which this node has just heard.
    pub(crate) fn receive(&mut self, now: Duration, from: Process, message: &[u8]) -> Result<(), Malformed> {
        let arrived = Arrived::decode(message)?;
        if arrived.header.src != from {
            return Err(Malformed);
        }
        let me = self.me();
        if arrived.third().is_some_and(|third| third.node != me.node && !self.is_member(third.node)) {
            return Ok(());
        }
        let (evidence, fresh_for, members) = (&self.evidence, self.evidence_for, &self.members);
        let message = arrived.filtered(|update| {
            let about = *update.id();
            match about.node == me.node {
                // An earlier process of this node is none of foca's business.
                true => about == me,
                false => members.contains(&about.node) && !evidence.contradicts(update, now, fresh_for),
            }
        });
        self.run(now, |foca, runtime| foca.handle_data(&message, runtime));
        Ok(())
    }

    /// When something is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Duration) {
        while let Some(timer) = self.timers.take_due(now) {
            self.run(now, |foca, runtime| foca.handle_timer(timer, runtime));
        }
    }

    /// Takes a message that is to be sent, if there is one.
    pub(crate) fn take_message(&mut self) -> Option<(NodeId, bytes::Bytes)> {
        loop {
            let (to, message) = self.runtime.to_send()?;
            if self.members.contains(&to.node) {
                return Some((to.node, message));
            }
        }
    }

    fn run(
        &mut self,
        now: Duration,
        step: impl FnOnce(
            &mut Foca<Process, PacketCodec, Xoshiro256PlusPlus, NoCustomBroadcast>,
            &mut AccumulatingRuntime<Process>,
        ) -> Result<(), foca::Error>,
    ) {
        if let Err(error) = step(&mut self.foca, &mut self.runtime) {
            tracing::debug!(%error, "a step of the failure detector failed");
        }
        while let Some((after, timer)) = self.runtime.to_schedule() {
            self.timers.add(now.saturating_add(after), timer);
        }
        // Changes are seen by comparing views.
        while self.runtime.to_notify().is_some() {}
    }
}

fn foca_config(config: &DetectionConfig) -> foca::Config {
    let at_least_one = |count: usize| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
    foca::Config {
        probe_period: config.probe_period,
        probe_rtt: config.probe_rtt,
        num_indirect_probes: at_least_one(config.indirect_probes),
        max_transmissions: NonZeroU8::new(TRANSMISSIONS_MAX).unwrap_or(NonZeroU8::MIN),
        suspect_to_down_after: config.suspicion,
        // The list of members bounds what foca remembers, and a process that is down never returns:
        // it takes a new renewal number, or a new boot number.
        remove_down_after: None,
        max_packet_size: at_least_one(MESSAGE_BYTES_MAX),
        notify_down_members: true,
        periodic_announce: None,
        // The core calls members that are down, also when it knows nobody who is up.
        periodic_announce_to_down_members: None,
        periodic_gossip: Some(PeriodicParams {
            frequency: config.gossip_interval,
            num_members: at_least_one(GOSSIP_TO),
        }),
    }
}
