//! Hosts: the machines of a world.

use super::event::Event;
use super::periodic::Round;
use super::pool::Pool;
use crate::random::Random;
use std::sync::Weak;

/// The number of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub usize);

/// The host of whatever is not on a machine: clients, faults and checks. It never fails.
pub const OUTSIDE: HostId = HostId(0);

/// One process on a host. A kill ends it, and the next start makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostKey {
    pub(crate) host: HostId,
    pub(crate) process: u64,
}

pub(super) struct Host {
    /// The number of the process that runs, or that will run at the next start.
    pub(super) process: u64,
    pub(super) is_paused: bool,
    /// What has become due while the host was paused.
    pub(super) held: Vec<Event>,
    /// The pools of the process. A job may hold what owns its pool.
    pub(super) pools: Vec<Weak<Pool>>,
    /// The work of the process that repeats.
    pub(super) rounds: Vec<Weak<Round>>,
    pub(super) random: Random,
    /// How far the clock on the wall is ahead of the true time.
    pub(super) clock_ahead_us: i64,
}

impl Host {
    pub(super) fn new(random: Random) -> Self {
        Self {
            process: 1,
            is_paused: false,
            held: Vec::new(),
            pools: Vec::new(),
            rounds: Vec::new(),
            random,
            clock_ahead_us: 0,
        }
    }
}
