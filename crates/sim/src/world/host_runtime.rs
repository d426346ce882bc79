//! The runtime of one process on a host.

use super::event::Event;
use super::host::HostKey;
use super::periodic::{Round, RoundHandle};
use super::pool::{Pool, PoolHandle};
use super::state::Inner;
use super::timer::Sleep;
use ombak_runtime::{BoxFuture, JobQueue, NoRandomBytes, Periodic, Runtime};
use ombak_storage::Machine;
use ombak_types::time::UnixMicros;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time, randomness, tasks and threads of one process. After the process was killed, nothing that
/// still uses this has an effect.
#[derive(Clone)]
pub struct HostRuntime {
    world: Arc<Inner>,
    on: HostKey,
}

impl HostRuntime {
    pub(super) const fn new(world: Arc<Inner>, on: HostKey) -> Self {
        Self { world, on }
    }

    /// Whether the process still runs.
    pub fn is_alive(&self) -> bool {
        self.world.is_alive(self.on)
    }
}

impl Runtime for HostRuntime {
    fn now(&self) -> Instant {
        self.world.clock.now()
    }

    fn wall_clock(&self) -> UnixMicros {
        UnixMicros(self.world.wall_clock_us(self.on.host))
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        self.world.fill_random(self.on.host, bytes);
        Ok(())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn(self.on, task);
    }

    /// The thread of the world does the work of all hosts.
    fn give_way(&self) {}

    fn work_in_bursts(&self) {}

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep::new(self.world.clone(), self.on, self.world.clock.ns_of(at)))
    }

    fn start_pool(&self, _name: &str, _threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        let pool = Pool::new(jobs_max, self.world.take_number());
        self.world.note_pool(self.on, &pool);
        Ok(Arc::new(PoolHandle { pool, world: Arc::downgrade(&self.world), on: self.on }))
    }

    fn start_periodic(
        &self,
        _name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        let round = Round::new(interval, round, self.world.take_number());
        self.world.note_round(self.on, &round);
        let delay_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(2);
        self.world.schedule_soon(delay_ns, Event::Round(self.on, round.clone()));
        Ok(Box::new(RoundHandle(round)))
    }
}

impl Machine for HostRuntime {
    fn now(&self) -> Instant {
        self.world.clock.now()
    }

    fn random_u64(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.world.fill_random(self.on.host, &mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }
}
