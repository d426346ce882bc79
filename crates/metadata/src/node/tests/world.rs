//! A small deterministic world: one thread, a clock that jumps to the next timer, random numbers
//! from a seed, and a network in memory that delays, parts and forgets.

use crate::node::{MetadataNode, Myself, NoAnswer, OwnMilestones, RaftTransport, Setup, StartError, Timing};
use crate::state::Refusal;
use bytes::Bytes;
use ombak_node_files::Milestone;
use ombak_ring::RingSize;
use ombak_runtime::{BoxFuture, JobQueue, JobsAtOnce, NoRandomBytes, Periodic, Runtime, RuntimeExt};
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_types::NodeId;
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

/// A test that takes more polls has failed.
const POLLS_MAX: u64 = 20_000_000;

struct Inner {
    now: Instant,
    random: u64,
    next: u64,
    ready: VecDeque<Arc<Task>>,
    timers: BTreeMap<(Instant, u64), Waker>,
    /// A hash over the order of everything that happened.
    trace: u64,
    polls: u64,
}

/// The executor and the clock.
pub struct Sim {
    inner: Mutex<Inner>,
    start: Instant,
}

struct Task {
    number: u64,
    sim: Arc<Sim>,
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    is_queued: AtomicBool,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            let sim = self.sim.clone();
            sim.inner.lock().ready.push_back(self);
        }
    }
}

impl Inner {
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn note(&mut self, what: u64) {
        self.trace = xxh3_64(&[self.trace.to_le_bytes(), what.to_le_bytes()].concat());
    }
}

impl Sim {
    fn new(seed: u64) -> Arc<Self> {
        let start = Instant::now();
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let inner =
            Inner { now: start, random, next: 0, ready: VecDeque::new(), timers: BTreeMap::new(), trace: 0, polls: 0 };
        Arc::new(Self { inner: Mutex::new(inner), start })
    }

    /// Runs everything until `main` ends.
    fn run<T: Send + 'static>(self: &Arc<Self>, main: impl Future<Output = T> + Send + 'static) -> T {
        let slot = Arc::new(Mutex::new(None));
        let result = slot.clone();
        SimRuntime(self.clone()).spawn(Box::pin(async move { *result.lock() = Some(main.await) }));
        loop {
            if let Some(done) = slot.lock().take() {
                return done;
            }
            self.step();
        }
    }

    fn step(&self) {
        let mut inner = self.inner.lock();
        if let Some(task) = inner.ready.pop_front() {
            inner.polls += 1;
            assert!(inner.polls < POLLS_MAX, "the world does not come to rest");
            let at = inner.now.duration_since(self.start).as_nanos() as u64;
            inner.note(task.number);
            inner.note(at);
            drop(inner);
            task.is_queued.store(false, Ordering::Relaxed);
            let waker = Waker::from(task.clone());
            let mut future = task.future.lock().take();
            if let Some(running) = &mut future
                && running.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
            {
                *task.future.lock() = future;
            }
        } else {
            let ((at, _), waker) = inner.timers.pop_first().expect("something can still happen");
            inner.now = inner.now.max(at);
            drop(inner);
            waker.wake();
        }
    }
}

/// The runtime of all nodes.
#[derive(Clone)]
pub struct SimRuntime(Arc<Sim>);

impl Runtime for SimRuntime {
    fn now(&self) -> Instant {
        self.0.inner.lock().now
    }

    fn wall_clock(&self) -> UnixMicros {
        UnixMicros(self.now().duration_since(self.0.start).as_micros() as u64)
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        let mut inner = self.0.inner.lock();
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&inner.random().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut inner = self.0.inner.lock();
        inner.next += 1;
        let number = inner.next;
        let (sim, future) = (self.0.clone(), Mutex::new(Some(task)));
        inner.ready.push_back(Arc::new(Task { number, sim, future, is_queued: AtomicBool::new(true) }));
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let sim = self.0.clone();
        let mut key = None;
        Box::pin(poll_fn(move |cx| {
            let mut inner = sim.inner.lock();
            if let Some(key) = key.take() {
                inner.timers.remove(&key);
            }
            if inner.now >= at {
                return Poll::Ready(());
            }
            inner.next += 1;
            key = Some((at, inner.next));
            let number = inner.next;
            inner.timers.insert((at, number), cx.waker().clone());
            Poll::Pending
        }))
    }

    fn start_pool(&self, _: &str, _: usize, _: usize) -> io::Result<Arc<dyn JobQueue>> {
        Ok(Arc::new(JobsAtOnce))
    }

    fn start_periodic(&self, _: &str, _: Duration, _: Box<dyn FnMut() + Send>) -> io::Result<Box<dyn Periodic>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The network.
#[derive(Default)]
struct Net {
    nodes: Mutex<BTreeMap<NodeId, Arc<MetadataNode>>>,
    /// Pairs whose messages from the first to the second are lost.
    cut: Mutex<BTreeSet<(NodeId, NodeId)>>,
}

struct Link {
    me: NodeId,
    net: Arc<Net>,
    runtime: SimRuntime,
    /// Whether the power of this node failed. What is left of it then reaches nobody.
    is_dead: Arc<AtomicBool>,
}

impl RaftTransport for Link {
    fn send(&self, to: NodeId, request: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let (me, net, runtime) = (self.me, self.net.clone(), self.runtime.clone());
        let is_dead = self.is_dead.clone();
        Box::pin(async move {
            let delay = || Duration::from_micros(runtime.random_u64().unwrap_or(0) % 20_000);
            let is_cut = |from, to| is_dead.load(Ordering::Relaxed) || net.cut.lock().contains(&(from, to));
            let lost = async |why: &str| {
                runtime.sleep_until(deadline).await;
                Err(NoAnswer { to, why: why.into() })
            };
            runtime.sleep(delay()).await;
            let node = net.nodes.lock().get(&to).cloned();
            let Some(node) = node.filter(|_| !is_cut(me, to)) else { return lost("the request is lost").await };
            let response = node.handle(me, request, deadline).await;
            runtime.sleep(delay()).await;
            if is_cut(to, me) { lost("the response is lost").await } else { Ok(response) }
        })
    }
}

/// A directory that draws a milestone at each start, and of which nobody makes a copy.
struct Starts(u64);

impl OwnMilestones for Starts {
    fn newest(&self) -> Option<Milestone> {
        Some(Milestone { number: self.0, token: self.0 })
    }

    fn has_passed(&self, known: Milestone) -> bool {
        known.number <= self.0
    }

    fn found_older(&self, why: &Refusal) {
        panic!("a healthy node is refused: {why}");
    }
}

/// A cluster in one world.
pub struct World {
    sim: Arc<Sim>,
    pub runtime: SimRuntime,
    net: Arc<Net>,
    disks: BTreeMap<NodeId, (Arc<FaultyFs>, u64)>,
    dead: BTreeMap<NodeId, Arc<AtomicBool>>,
    pub timing: Timing,
}

pub const DIR: &str = "/metadata";

pub fn id(number: u64) -> NodeId {
    NodeId::new(number)
}

impl World {
    pub fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let runtime = SimRuntime(sim.clone());
        let timing = Timing { voter_gone: Duration::from_secs(30), ..Timing::default() };
        Self { sim, runtime, net: Arc::default(), disks: BTreeMap::new(), dead: BTreeMap::new(), timing }
    }

    pub fn run<T: Send + 'static>(&self, main: impl Future<Output = T> + Send + 'static) -> T {
        self.sim.run(main)
    }

    /// A hash over the order of everything that happened.
    pub fn trace(&self) -> u64 {
        self.sim.inner.lock().trace
    }

    pub fn disk(&self, number: u64) -> Arc<FaultyFs> {
        self.disks[&id(number)].0.clone()
    }

    pub fn node(&self, number: u64) -> Arc<MetadataNode> {
        self.net.nodes.lock()[&id(number)].clone()
    }

    pub fn nodes(&self) -> Vec<Arc<MetadataNode>> {
        self.net.nodes.lock().values().cloned().collect()
    }

    /// Starts a node. The first one founds the cluster.
    pub fn start(&mut self, number: u64) -> Result<(), StartError> {
        let node = id(number);
        let (fs, boot) = self.disks.entry(node).or_insert_with(|| {
            let fs = FaultyFs::new(number);
            fs.create_dir_all(Path::new(DIR)).unwrap();
            fs.sync_dir(Path::new("/")).unwrap();
            (fs, 0)
        });
        *boot += 1;
        let me = Myself { node, name: format!("n{number}"), peer_address: format!("h:{number}"), boot: *boot };
        let runtime = self.runtime.clone();
        let is_dead = Arc::<AtomicBool>::default();
        self.dead.insert(node, is_dead.clone());
        let setup = Setup {
            fs: fs.clone(),
            dir: DIR.into(),
            transport: Arc::new(Link { me: node, net: self.net.clone(), runtime: runtime.clone(), is_dead }),
            runtime: Arc::new(runtime),
            me,
            milestones: Arc::new(Starts(*boot)),
            found: (number == 1).then(|| RingSize::new(8).unwrap()),
            timing: self.timing.clone(),
        };
        let started = self.run(MetadataNode::start(setup))?;
        self.net.nodes.lock().insert(node, started);
        Ok(())
    }

    /// The power of a node fails.
    pub fn kill(&mut self, number: u64, loss: Loss) {
        self.net.nodes.lock().remove(&id(number));
        self.dead[&id(number)].store(true, Ordering::Relaxed);
        let (fs, _) = self.disks.get_mut(&id(number)).unwrap();
        *fs = fs.restart(loss);
    }

    /// Parts the nodes of one side from all others.
    pub fn part(&self, side: &[u64]) {
        let side: BTreeSet<NodeId> = side.iter().copied().map(id).collect();
        let mut cut = self.net.cut.lock();
        for one in self.disks.keys() {
            for other in self.disks.keys().filter(|other| side.contains(one) != side.contains(other)) {
                cut.insert((*one, *other));
            }
        }
    }

    pub fn heal(&self) {
        self.net.cut.lock().clear();
    }

    pub fn deadline(&self, secs: u64) -> Instant {
        self.runtime.now() + Duration::from_secs(secs)
    }

    /// Waits until a condition holds, for two minutes of the world's time.
    pub fn wait_for(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = self.deadline(120);
        while !condition(self) {
            assert!(self.runtime.now() < deadline, "in vain: {what}");
            let runtime = self.runtime.clone();
            self.run(async move { runtime.sleep(Duration::from_millis(100)).await });
        }
    }
}
