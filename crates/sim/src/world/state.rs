//! The state of a world.

use super::clock::Clock;
use super::event::Event;
use super::host::{Host, HostId, HostKey};
use super::periodic::Round;
use super::pool::Pool;
use super::tasks::{Task, TaskId, WakeTask};
use crate::random::Random;
use crate::trace::Trace;
use ombak_runtime::BoxFuture;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

/// How long a task that was woken waits for its turn, at most.
const TURN_NS_MAX: u64 = 20_000;

/// A world, as its parts see it.
pub(crate) struct Inner {
    pub(crate) clock: Clock,
    state: Mutex<State>,
    this: Weak<Self>,
}

/// No code of a host runs while this is locked.
pub(super) struct State {
    pub(super) queue: BTreeMap<(u64, u64), Event>,
    /// The number of the next event. Events of one moment happen in the order of their numbers.
    next_event: u64,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    next_task: usize,
    /// The tasks that were woken by the present event.
    woken: BTreeSet<TaskId>,
    /// The numbers of pools and periodic work, for the trace.
    next_number: u64,
    pub(super) hosts: Vec<Host>,
    pub(super) random: Random,
    pub(super) trace: Trace,
}

impl State {
    pub(super) fn push(&mut self, at_ns: u64, event: Event) {
        self.queue.insert((at_ns, self.next_event), event);
        self.next_event += 1;
    }

    pub(super) fn is_alive(&self, key: HostKey) -> bool {
        self.hosts[key.host.0].process == key.process
    }
}

impl Inner {
    pub(super) fn new(seed: u64, hosts: usize) -> Arc<Self> {
        let mut random = Random::new(seed);
        let hosts = (0..=hosts).map(|_| Host::new(random.fork())).collect();
        let state = State {
            queue: BTreeMap::new(),
            next_event: 0,
            tasks: BTreeMap::new(),
            next_task: 0,
            woken: BTreeSet::new(),
            next_number: 0,
            hosts,
            random,
            trace: Trace::default(),
        };
        Arc::new_cyclic(|this| Self { clock: Clock::new(), state: Mutex::new(state), this: this.clone() })
    }

    /// Reads or changes the state. `change` must not drop or wake anything of a host.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock())
    }

    pub(crate) fn is_alive(&self, key: HostKey) -> bool {
        self.with(|state| state.is_alive(key))
    }

    /// The process that runs on a host.
    pub(crate) fn process_of(&self, host: HostId) -> HostKey {
        HostKey { host, process: self.with(|state| state.hosts[host.0].process) }
    }

    pub(crate) fn schedule(&self, at_ns: u64, event: Event) {
        self.with(|state| state.push(at_ns, event));
    }

    /// Schedules an event at a random moment from now on.
    pub(crate) fn schedule_soon(&self, delay_ns_max: u64, event: Event) {
        let now_ns = self.clock.now_ns();
        self.with(|state| {
            let at_ns = now_ns + state.random.within(1..delay_ns_max);
            state.push(at_ns, event);
        });
    }

    pub(crate) fn random<R>(&self, draw: impl FnOnce(&mut Random) -> R) -> R {
        self.with(|state| draw(&mut state.random))
    }

    /// Remembers a pool, so that the end of its process drops its jobs.
    pub(super) fn note_pool(&self, on: HostKey, pool: &Arc<Pool>) {
        self.with(|state| {
            if state.is_alive(on) {
                state.hosts[on.host.0].pools.push(Arc::downgrade(pool));
            }
        });
    }

    /// Remembers work that repeats, so that the end of its process drops it.
    pub(super) fn note_round(&self, on: HostKey, round: &Arc<Round>) {
        self.with(|state| {
            if state.is_alive(on) {
                state.hosts[on.host.0].rounds.push(Arc::downgrade(round));
            }
        });
    }

    pub(super) fn take_number(&self) -> u64 {
        self.with(|state| {
            state.next_number += 1;
            state.next_number
        })
    }

    /// Adds a fact to the trace.
    pub(crate) fn note(&self, what: [u64; 3]) {
        self.with(|state| state.trace.add(what));
    }

    pub(super) fn spawn(&self, on: HostKey, future: BoxFuture<'static, ()>) {
        let now_ns = self.clock.now_ns();
        let refused = self.with(|state| {
            if !state.is_alive(on) {
                return Some(future);
            }
            let task = TaskId(state.next_task);
            state.next_task += 1;
            let waker = Arc::new(WakeTask { task, world: self.this.clone() }).into();
            state.tasks.insert(task, Task { on, future: Some(future), is_due: true, waker });
            let at_ns = now_ns + state.random.within(1..TURN_NS_MAX);
            state.push(at_ns, Event::Poll(task));
            None
        });
        // A process that was killed starts nothing.
        drop(refused);
    }

    pub(super) fn wake(&self, id: TaskId) {
        self.with(|state| {
            let Some(task) = state.tasks.get_mut(&id) else { return };
            if !std::mem::replace(&mut task.is_due, true) {
                state.woken.insert(id);
            }
        });
    }

    /// Gives the tasks that were woken their turns. The order in which one event has woken them
    /// does not matter: tokio's channels wake several receivers in an order of their own.
    pub(super) fn schedule_woken(&self) {
        let now_ns = self.clock.now_ns();
        self.with(|state| {
            while let Some(task) = state.woken.pop_first() {
                let at_ns = now_ns + state.random.within(1..TURN_NS_MAX);
                state.push(at_ns, Event::Poll(task));
            }
        });
    }

    pub(super) fn wall_clock_us(&self, host: HostId) -> u64 {
        let ahead = self.with(|state| state.hosts[host.0].clock_ahead_us);
        self.clock.unix_us().saturating_add_signed(ahead)
    }

    pub(super) fn fill_random(&self, host: HostId, bytes: &mut [u8]) {
        self.with(|state| state.hosts[host.0].random.fill(bytes));
    }
}
