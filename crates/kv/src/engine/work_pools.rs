//! Pools of threads for work that no get or put of a client waits for.
//!
//! What it is: one pool for each class of work, as Riak has them, or fewer if the configuration
//! says so. A piece of work is done in steps of a few milliseconds. Each step waits for a thread
//! of its pool, and tenants have their shares of the threads. All threads work in bursts: they
//! leave the processor after each 0.2 ms. All pools but that of walks also come behind threads with
//! requests.
//!
//! What it is not: it does not bound how many listings, folds and queries are under way. Each has
//! at most one step that waits here.
//!
//! Invariants:
//! * At most [`WAITING_MAX`] steps or [`WALKS_WAITING_MAX`] walks wait for a pool. Further ones are
//!   refused with `overload` at once.
//! * A class never waits for the work of another one, unless the configuration has them share a
//!   pool. Questions to features never share one.

use super::work_class::WorkClass;
use super::work_counts::{PoolCounts, WorkCounts};
use crate::config::{PoolStrategy, WorkerPools};
use ombak_runtime::{FairPool, FairPoolConfig, PAUSE_MAX, PAUSE_MAX_OF_TRANSFERS, Pool, Runtime, Tenant};
use ombak_stats::Feature;
use std::io;
use std::sync::Arc;

/// How many steps may wait for a pool.
const WAITING_MAX: usize = 4_096;
/// How many walks may wait for a pool that is theirs alone. A walk for another node is one step and
/// takes long. A node whose walk finds no room asks again later.
const WALKS_WAITING_MAX: usize = 256;

/// The pool of questions to features, which Riak does not have.
pub(super) const FEATURE_POOL: &str = "feature_pool";

/// The pools of a node.
pub(crate) struct WorkPools {
    pools: Vec<(FairPool, Arc<PoolCounts>)>,
    strategy: PoolStrategy,
}

/// A pool: its name in Riak, the name of its threads, their number, and how many steps may wait.
type Planned = (&'static str, &'static str, usize, usize);

impl WorkPools {
    pub(super) fn start(runtime: &Arc<dyn Runtime>, config: &WorkerPools, has_features: bool) -> io::Result<Self> {
        let (planned, mut pools) = (planned(config, has_features), Vec::new());
        // Clusters wait for walks, and only their clients for all else.
        let of_walks = place(config.strategy, WorkClass::Walk, planned.len());
        for (at, (name, threads_name, threads, jobs_max)) in planned.into_iter().enumerate() {
            let counts = Arc::new(PoolCounts::new(name));
            let times = Some(counts.clone() as _);
            let is_of_walks = at == of_walks;
            let config = FairPoolConfig {
                name: threads_name,
                threads,
                jobs_max,
                comes_behind: !is_of_walks,
                pause_max: if is_of_walks { PAUSE_MAX_OF_TRANSFERS } else { PAUSE_MAX },
                times,
            };
            pools.push((FairPool::start(runtime, config)?, counts));
        }
        Ok(Self { pools, strategy: config.strategy })
    }

    /// The threads for a class of work, as one tenant uses them.
    pub(crate) fn of(&self, class: WorkClass, tenant: Tenant) -> Pool {
        let (pool, _) = &self.pools[place(self.strategy, class, self.pools.len())];
        pool.of(tenant)
    }

    /// What is counted of the pools.
    pub(super) fn counts(&self) -> Arc<dyn Feature> {
        Arc::new(WorkCounts(self.pools.iter().map(|(_, counts)| counts.clone()).collect()))
    }

    /// Refuses further work, and waits until the steps that were taken are done.
    pub(super) fn stop(&self) {
        self.pools.iter().for_each(|(pool, _)| pool.stop());
    }
}

/// The pools that there are. That of features is the last one.
fn planned(config: &WorkerPools, has_features: bool) -> Vec<Planned> {
    let mut pools = vec![("vnode_pool", "ombak-query", config.vnode, WAITING_MAX)];
    match config.strategy {
        PoolStrategy::None => {}
        PoolStrategy::Single => pools.push(("node_worker_pool", "ombak-fold", config.node, WAITING_MAX)),
        PoolStrategy::Dscp => pools.extend([
            ("af1_pool", "ombak-walk", config.af1, WALKS_WAITING_MAX),
            ("af2_pool", "ombak-list", config.af2, WAITING_MAX),
            ("af3_pool", "ombak-compare", config.af3, WAITING_MAX),
            ("af4_pool", "ombak-fold", config.af4, WAITING_MAX),
        ]),
    }
    if has_features {
        pools.push((FEATURE_POOL, "ombak-feature", config.vnode, WAITING_MAX));
    }
    pools
}

/// The place of the pool of a class among those that there are. A node that has no features gets no
/// work for them.
fn place(strategy: PoolStrategy, class: WorkClass, pools: usize) -> usize {
    match (strategy, class) {
        (_, WorkClass::Feature) => pools - 1,
        (PoolStrategy::None, _) | (_, WorkClass::IndexQuery) => 0,
        (PoolStrategy::Single, _) | (PoolStrategy::Dscp, WorkClass::Walk) => 1,
        (PoolStrategy::Dscp, WorkClass::Listing) => 2,
        (PoolStrategy::Dscp, WorkClass::Comparison) => 3,
        (PoolStrategy::Dscp, WorkClass::Operation) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_runtime::{TokioRuntime, pause_if_due, pauses_of_this_thread};
    use ombak_stats::Number;
    use std::sync::mpsc::sync_channel;
    use std::time::{Duration, Instant};

    const CLASSES: [WorkClass; 6] = [
        WorkClass::IndexQuery,
        WorkClass::Walk,
        WorkClass::Listing,
        WorkClass::Comparison,
        WorkClass::Operation,
        WorkClass::Feature,
    ];

    fn pools(strategy: PoolStrategy) -> WorkPools {
        let one_each = WorkerPools { strategy, vnode: 1, node: 1, af1: 1, af2: 1, af3: 1, af4: 1 };
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        WorkPools::start(&runtime, &one_each, true).unwrap()
    }

    /// The name of the pool that did a step of a class.
    fn pool_of(strategy: PoolStrategy, class: WorkClass) -> &'static str {
        let pools = pools(strategy);
        pools.of(class, Tenant::default()).submit(|| ()).unwrap();
        pools.stop();
        let did = |counts: &&Arc<PoolCounts>| {
            let prefix = if counts.pool == FEATURE_POOL { "ombak_" } else { "" };
            let total = format!("{prefix}worker_{}_total", counts.pool);
            let feature = WorkCounts(vec![Arc::clone(counts)]);
            feature.figures().iter().any(|figure| figure.name == total && matches!(figure.number, Number::Total(1)))
        };
        pools.pools.iter().map(|(_, counts)| counts).find(did).unwrap().pool
    }

    #[test]
    fn each_class_has_the_pool_of_riak() {
        let of = |strategy| CLASSES.map(|class| pool_of(strategy, class));
        assert_eq!(
            of(PoolStrategy::Dscp),
            ["vnode_pool", "af1_pool", "af2_pool", "af3_pool", "af4_pool", FEATURE_POOL]
        );
        let (vnode, node) = ("vnode_pool", "node_worker_pool");
        assert_eq!(of(PoolStrategy::Single), [vnode, node, node, node, node, FEATURE_POOL]);
        assert_eq!(of(PoolStrategy::None), [vnode, vnode, vnode, vnode, vnode, FEATURE_POOL]);
    }

    /// Long steps pause within on all threads.
    #[test]
    fn all_threads_work_in_bursts() {
        let pools = pools(PoolStrategy::Dscp);
        let pauses_of = |class| {
            let (tell, told) = sync_channel(1);
            let work = move || {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(1) {}
                pause_if_due();
                tell.send(pauses_of_this_thread()).unwrap();
            };
            pools.of(class, Tenant::default()).submit(work).unwrap();
            told.recv_timeout(Duration::from_secs(30)).unwrap()
        };
        assert_eq!(CLASSES.map(pauses_of), [1; 6]);
    }

    /// The nice value of the calling thread: the 19th field of its status.
    #[cfg(target_os = "linux")]
    fn nice() -> i32 {
        let status = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, after_name) = status.rsplit_once(')').unwrap();
        after_name.split_whitespace().nth(16).unwrap().parse().unwrap()
    }

    /// A cluster waits for walks, and only its clients for all else.
    #[cfg(target_os = "linux")]
    #[test]
    fn all_but_walks_come_behind_requests() {
        let pools = pools(PoolStrategy::Dscp);
        let comes_behind = |class| {
            let (tell, told) = sync_channel(1);
            pools.of(class, Tenant::default()).submit(move || tell.send(nice()).unwrap()).unwrap();
            told.recv_timeout(Duration::from_secs(30)).unwrap() > nice()
        };
        assert_eq!(CLASSES.map(comes_behind), CLASSES.map(|class| class != WorkClass::Walk));
    }

    /// An index query is answered while each thread of all other classes is occupied.
    #[test]
    fn a_class_does_not_wait_for_the_others() {
        let pools = pools(PoolStrategy::Dscp);
        for free in CLASSES {
            let gates: Vec<_> = CLASSES
                .into_iter()
                .filter(|class| *class != free)
                .map(|class| {
                    let (open, gate) = sync_channel::<()>(0);
                    pools.of(class, Tenant::default()).submit(move || assert!(gate.recv().is_err())).unwrap();
                    open
                })
                .collect();
            let (tell, told) = sync_channel(1);
            pools.of(free, Tenant::default()).submit(move || tell.send(()).unwrap()).unwrap();
            told.recv_timeout(Duration::from_secs(30)).unwrap();
            drop(gates);
        }
    }

    #[test]
    fn a_pool_refuses_what_is_too_much_and_the_others_go_on() {
        let pools = pools(PoolStrategy::Dscp);
        let (open, gate) = sync_channel::<()>(0);
        let (tell, told) = sync_channel(1);
        let listing = pools.of(WorkClass::Listing, Tenant::default());
        let hold = move || {
            tell.send(()).unwrap();
            assert!(gate.recv().is_err());
        };
        listing.submit(hold).unwrap();
        told.recv_timeout(Duration::from_secs(30)).unwrap();
        let refused = (0..=WAITING_MAX).filter(|_| listing.submit(|| ()).is_err()).count();
        assert_eq!(refused, 1);
        assert_eq!(pools.of(WorkClass::Operation, Tenant::default()).submit(|| ()), Ok(()));
        let counts = pools.counts();
        let refusals = counts.figures().into_iter().filter_map(|figure| match figure.number {
            Number::Total(total) if figure.name.ends_with("_refused_total") => Some((figure.name, total)),
            _ => None,
        });
        let refusals: Vec<_> = refusals.filter(|(_, total)| *total > 0).collect();
        assert_eq!(refusals, [("ombak_worker_af2_pool_refused_total".to_owned(), 1)]);
        drop(open);
    }
}
