//! The state of each link, in each direction.

use crate::random::Random;
use crate::world::HostId;
use std::time::Duration;

/// The way from one host to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Nothing passes.
    pub is_cut: bool,
    /// How long everything takes, at least.
    pub delay: Duration,
    /// How much longer it may take.
    pub jitter: Duration,
    /// How many of 1,000 segments are lost and sent again.
    pub lost_per_mille: u64,
}

impl Default for Link {
    fn default() -> Self {
        Self { is_cut: false, delay: Duration::from_micros(100), jitter: Duration::from_micros(400), lost_per_mille: 0 }
    }
}

/// How often links have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Segments or messages that met a cut link.
    pub held_up: u64,
    /// Segments or messages that were lost.
    pub lost: u64,
}

/// All links.
pub struct Links {
    hosts: usize,
    links: Vec<Link>,
    /// What has happened on them.
    pub counts: LinkCounts,
}

impl Links {
    pub(super) fn new(hosts: usize) -> Self {
        Self { hosts: hosts + 1, links: vec![Link::default(); (hosts + 1).pow(2)], counts: LinkCounts::default() }
    }

    /// The way from one host to another one.
    pub fn link(&self, from: HostId, to: HostId) -> Link {
        self.links[from.0 * self.hosts + to.0]
    }

    /// Changes the way from one host to another one.
    pub fn change(&mut self, from: HostId, to: HostId, change: impl FnOnce(&mut Link)) {
        change(&mut self.links[from.0 * self.hosts + to.0]);
    }

    /// Makes all links whole.
    pub fn heal_all(&mut self) {
        self.links.fill(Link::default());
    }
}

impl Link {
    /// How long something takes this time.
    pub fn delay_ns(&self, random: &mut Random) -> u64 {
        let jitter_ns = u64::try_from(self.jitter.as_nanos()).unwrap_or(u64::MAX);
        u64::try_from(self.delay.as_nanos()).unwrap_or(u64::MAX) + random.within(0..jitter_ns + 1)
    }
}
