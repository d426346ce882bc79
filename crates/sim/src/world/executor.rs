//! Runs a world.

use super::event::Event;
use super::host::{HostId, HostKey, OUTSIDE};
use super::host_runtime::HostRuntime;
use super::state::Inner;
use super::tasks::{Task, TaskId};
use crate::trace::Trace;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a host that is resumed needs for what has become due meanwhile, for each event.
const CATCH_UP_NS_MAX: u64 = 50_000;

/// Why a future does not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// Nothing is due any more.
    #[error("nothing can happen any more")]
    NothingDue,
    /// The limit of virtual time has passed.
    #[error("it was not done after {0:?} of virtual time")]
    TimeLimit(Duration),
}

/// A world in which one seed decides everything. Clones are the same world.
#[derive(Clone)]
pub struct World {
    inner: Arc<Inner>,
}

impl World {
    /// A world with the hosts 1 … `hosts`, and [`OUTSIDE`].
    pub fn new(seed: u64, hosts: usize) -> Self {
        Self { inner: Inner::new(seed, hosts) }
    }

    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The runtime of the process that runs on a host.
    pub fn runtime(&self, host: HostId) -> Arc<HostRuntime> {
        Arc::new(HostRuntime::new(self.inner.clone(), self.inner.process_of(host)))
    }

    /// The time since the world began.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.inner.clock.now_ns())
    }

    /// What has happened so far.
    pub fn trace(&self) -> Trace {
        self.inner.with(|state| state.trace)
    }

    /// Another source of random numbers for a part of the run.
    pub fn fork_random(&self) -> crate::random::Random {
        self.inner.random(|random| random.fork())
    }

    /// Ends the process of a host. The next one begins when its runtime is asked for.
    pub fn kill(&self, host: HostId) {
        let (tasks, held, pools, rounds) = self.inner.with(|state| {
            let dead = HostKey { host, process: state.hosts[host.0].process };
            state.hosts[host.0].process += 1;
            state.hosts[host.0].is_paused = false;
            let held = std::mem::take(&mut state.hosts[host.0].held);
            let pools = std::mem::take(&mut state.hosts[host.0].pools);
            let rounds = std::mem::take(&mut state.hosts[host.0].rounds);
            let ids: Vec<TaskId> = state.tasks.iter().filter(|(_, task)| task.on == dead).map(|(id, _)| *id).collect();
            let tasks: Vec<Task> = ids.iter().filter_map(|id| state.tasks.remove(id)).collect();
            (tasks, held, pools, rounds)
        });
        self.inner.note([7, host.0 as u64, tasks.len() as u64]);
        drop((tasks, held));
        // A job that waits may hold the owner of its pool, so nobody else would ever drop it.
        pools.iter().filter_map(Weak::upgrade).for_each(|pool| drop(pool.close()));
        rounds.iter().filter_map(Weak::upgrade).for_each(|round| round.stop());
    }

    /// Stops the tasks of a host, while time goes on.
    pub fn pause(&self, host: HostId) {
        self.inner.with(|state| state.hosts[host.0].is_paused = true);
        self.inner.note([8, host.0 as u64, 0]);
    }

    /// Lets the tasks of a host go on.
    pub fn resume(&self, host: HostId) {
        let mut at_ns = self.inner.clock.now_ns();
        self.inner.with(|state| {
            state.hosts[host.0].is_paused = false;
            for event in std::mem::take(&mut state.hosts[host.0].held) {
                at_ns += state.random.within(1..CATCH_UP_NS_MAX);
                state.push(at_ns, event);
            }
        });
        self.inner.note([9, host.0 as u64, at_ns]);
    }

    /// Whether a host is paused.
    pub fn is_paused(&self, host: HostId) -> bool {
        self.inner.with(|state| state.hosts[host.0].is_paused)
    }

    /// Sets how far the clock on the wall of a host is ahead of the true time.
    pub fn set_clock_ahead_us(&self, host: HostId, ahead_us: i64) {
        self.inner.with(|state| state.hosts[host.0].clock_ahead_us = ahead_us);
        self.inner.note([10, host.0 as u64, ahead_us as u64]);
    }

    /// Runs the world until a future has ended, which runs outside of all hosts.
    pub fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Stuck> {
        let ended = Arc::new(Mutex::new(None));
        let slot = ended.clone();
        let on = self.inner.process_of(OUTSIDE);
        self.inner.spawn(
            on,
            Box::pin(async move {
                let value = future.await;
                *slot.lock() = Some(value);
            }),
        );
        let until_ns = self.inner.clock.now_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        loop {
            if let Some(value) = ended.lock().take() {
                return Ok(value);
            }
            if self.inner.clock.now_ns() > until_ns {
                return Err(Stuck::TimeLimit(limit));
            }
            if !self.step() {
                return Err(Stuck::NothingDue);
            }
        }
    }

    /// Lets the next event happen. Returns false if there is none.
    fn step(&self) -> bool {
        self.inner.schedule_woken();
        let next = self.inner.with(|state| state.queue.pop_first());
        let Some(((at_ns, _), event)) = next else { return false };
        self.inner.clock.set(at_ns);
        self.happen(at_ns, event);
        true
    }

    fn happen(&self, at_ns: u64, event: Event) {
        let on = match &event {
            Event::Poll(task) => self.inner.with(|state| state.tasks.get(task).map(|task| task.on)),
            Event::Timer(on, _) | Event::Job(on, _) | Event::Round(on, _) => Some(*on),
            Event::World(..) => Some(self.inner.process_of(OUTSIDE)),
        };
        let Some(on) = on else { return };
        // The event, unless it is held until the host is resumed.
        let event = self.inner.with(|state| {
            if !state.is_alive(on) {
                return Err(Some(event));
            }
            let host = &mut state.hosts[on.host.0];
            if host.is_paused {
                host.held.push(event);
                return Err(None);
            }
            state.trace.add([at_ns, on.host.0 as u64, event.code()]);
            Ok(event)
        });
        match event {
            Ok(Event::Poll(task)) => self.poll(task),
            Ok(Event::Timer(_, timer)) => drop(timer.fire()),
            Ok(Event::Job(_, pool)) => pool.work(),
            Ok(Event::Round(_, round)) => {
                if round.run() {
                    let interval_ns = u64::try_from(round.interval.as_nanos()).unwrap_or(u64::MAX);
                    let at_ns = at_ns.saturating_add(interval_ns);
                    self.inner.schedule(at_ns, Event::Round(on, round));
                }
            }
            Ok(Event::World(_, happen)) => happen(),
            // What belonged to a process that was killed is dropped here, without a lock.
            Err(dropped) => drop(dropped),
        }
    }

    fn poll(&self, id: TaskId) {
        let taken = self.inner.with(|state| {
            let task = state.tasks.get_mut(&id)?;
            task.is_due = false;
            Some((task.future.take()?, task.waker.clone()))
        });
        let Some((mut future, waker)) = taken else { return };
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let ended = self.inner.with(|state| match (polled, state.tasks.get_mut(&id)) {
            (Poll::Pending, Some(task)) => {
                task.future = Some(future);
                (None, None)
            }
            // The task has ended, or its host was killed by what it did.
            _ => (Some(future), state.tasks.remove(&id)),
        });
        drop(ended);
    }
}

/// Ends a world when it is dropped.
pub struct EndOfWorld(pub World);

impl Drop for EndOfWorld {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl World {
    /// Ends all processes, so that tasks which hold each other do not outlive the world.
    fn end(&self) {
        let hosts = self.inner.with(|state| state.hosts.len());
        (0..hosts).for_each(|host| self.kill(HostId(host)));
        let queue = self.inner.with(|state| std::mem::take(&mut state.queue));
        drop(queue);
    }
}
