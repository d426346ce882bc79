//! The thread that makes trees as the schedule says, and what it counts and logs.

use super::schedule::{Next, Room, TreeSchedule};
use crate::buckets::BucketRegistry;
use crate::config::{KeepTrees, KvConfig, TreesConfig};
use crate::kept_trees::{BuildFailure, BuildStep, TREE_BYTES_MAX, TreeBuild};
use crate::partition::PartitionTable;
use crate::replica::ClassId;
use ombak_ring::placement::Placement;
use ombak_runtime::{Runtime, RuntimeExt, pause_if_due};
use ombak_stats::{Feature, Figure, Number, Sum};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

/// How often [`TreeKeeping::work`] is called.
pub(crate) const ROUND: Duration = Duration::from_millis(100);
/// How long the steps of one call take together.
const WORK_MAX: Duration = Duration::from_millis(80);
/// Number of versions of one step.
const STEP_VERSIONS: usize = 250;
/// How often all classes are looked at, if nobody asks for a tree before.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How often the pace of a class doubles at most whose builds fail: its store takes the snapshot
/// away from a build that is too slow.
const DOUBLINGS_MAX: u32 = 6;

/// What was done since the start of the node.
#[derive(Debug, Default)]
struct Counts {
    built: Sum,
    failed: Sum,
    differences: Sum,
}

/// What the thread is at.
pub(super) struct Work {
    pub(super) schedule: TreeSchedule,
    /// The classes of which this node is a primary.
    pub(super) classes: BTreeSet<ClassId>,
    /// The one build that is under way.
    pub(super) build: Option<(ClassId, TreeBuild)>,
    looked: Option<Instant>,
    /// Whether some class has nothing to do before the next look.
    pub(super) is_idle: bool,
    works_in_bursts: bool,
    has_told_of_memory: bool,
}

/// The kept trees of one node; see the module.
pub(crate) struct TreeKeeping {
    config: TreesConfig,
    pub(super) partitions: Arc<PartitionTable>,
    buckets: Arc<BucketRegistry>,
    pub(super) runtime: Arc<dyn Runtime>,
    placement: Mutex<Option<(NodeId, Placement)>>,
    pub(super) work: Mutex<Work>,
    /// The n_vals that folds have asked for since the last round.
    asked: Mutex<BTreeSet<u32>>,
    is_changed: AtomicBool,
    counts: Counts,
}

impl fmt::Debug for TreeKeeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeKeeping")
            .field("config", &self.config)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl TreeKeeping {
    pub(crate) fn new(config: &KvConfig, buckets: Arc<BucketRegistry>, partitions: Arc<PartitionTable>) -> Self {
        let work = Work {
            schedule: TreeSchedule::new(config.trees),
            classes: BTreeSet::new(),
            build: None,
            looked: None,
            is_idle: false,
            works_in_bursts: false,
            has_told_of_memory: false,
        };
        Self {
            config: config.trees,
            partitions,
            buckets,
            runtime: config.runtime.clone(),
            placement: Mutex::new(None),
            work: Mutex::new(work),
            asked: Mutex::default(),
            is_changed: AtomicBool::new(true),
            counts: Counts::default(),
        }
    }

    /// Whether any tree is ever kept.
    pub(crate) fn is_enabled(&self) -> bool {
        self.config.keep != KeepTrees::Never
    }

    /// A fold asks for the tree of an n_val.
    pub(crate) fn asked(&self, n: u32) {
        if self.is_enabled() {
            self.asked.lock().insert(n);
        }
    }

    /// This placement is in force.
    pub(crate) fn set_placement(&self, here: NodeId, placement: &Placement) {
        if self.is_enabled() {
            *self.placement.lock() = Some((here, placement.clone()));
            self.is_changed.store(true, Ordering::SeqCst);
        }
    }

    /// Gives the build up that is under way. No other begins: the thread has ended.
    pub(crate) fn stop(&self) {
        self.work.lock().build = None;
    }

    /// Does what is due, for a moment. One thread calls this again and again.
    pub(crate) fn work(&self, stops: &AtomicBool) {
        let began = self.runtime.now();
        let mut work = self.work.lock();
        if !std::mem::replace(&mut work.works_in_bursts, true) {
            // It locks all keys of a partition for moments, so it must get the processor then.
            self.runtime.work_in_bursts();
        }
        self.take_questions(&mut work, began);
        let is_time = work.looked.is_none_or(|looked| began.saturating_duration_since(looked) >= LOOK_INTERVAL);
        if self.is_changed.swap(false, Ordering::SeqCst) || is_time {
            self.look(&mut work, began);
        }
        let mut budget = self.versions_per_round();
        while budget > 0
            && !work.is_idle
            && !stops.load(Ordering::Relaxed)
            && self.runtime.now().saturating_duration_since(began) < WORK_MAX
        {
            match work.build.take() {
                Some((class, build)) => self.step(&mut work, (class, build), &mut budget),
                None => self.begin(&mut work),
            }
            pause_if_due();
        }
    }

    /// How many versions one call of [`Self::work`] reads.
    fn versions_per_round(&self) -> usize {
        let a_round = self.config.versions_per_second.max(1) as f64 * ROUND.as_secs_f64();
        (a_round as usize).max(1)
    }

    fn take_questions(&self, work: &mut Work, now: Instant) {
        for n in std::mem::take(&mut *self.asked.lock()) {
            if work.schedule.asked(n, now) {
                info!(n_val = n, "a fold has asked for the tree of an n_val: it is kept from now on");
                work.is_idle = false;
            }
        }
    }

    /// Looks at all classes, and gives up the trees that are not to be kept.
    fn look(&self, work: &mut Work, now: Instant) {
        (work.looked, work.is_idle) = (Some(now), false);
        let ns = self.buckets.snapshot().all_n_vals();
        let placement = self.placement.lock().clone();
        let is_primary = |class: ClassId| {
            placement.as_ref().is_some_and(|(here, known)| known.home(class.partition).is_primary(*here, class.n))
        };
        let mut classes = BTreeSet::new();
        for partition in self.partitions.all_open().filter(|partition| partition.may_keep_trees()) {
            let class = |n: u32| ClassId { partition: partition.number(), n };
            let of_node: BTreeSet<u32> = ns.iter().copied().filter(|n| is_primary(class(*n))).collect();
            for n in of_node.iter().copied().filter(|n| partition.has_kept_tree(*n)) {
                work.schedule.found(n, now);
            }
            partition.keep_only_trees_of(|n| of_node.contains(&n) && work.schedule.is_wanted(n, now));
            classes.extend(of_node.into_iter().map(class));
        }
        work.schedule.retain(&classes);
        work.classes = classes;
    }

    /// Begins the next build, if one is due.
    fn begin(&self, work: &mut Work) {
        let now = self.runtime.now();
        let has_tree = |class: ClassId| {
            // What is not open here is not built.
            self.partitions.get(class.partition).is_none_or(|partition| partition.has_kept_tree(class.n))
        };
        let random = || self.runtime.random_u64().unwrap_or_default();
        let Work { schedule, classes, .. } = work;
        let class = match schedule.next(classes, now, has_tree, self.room(), random) {
            Next::Build(class) => class,
            Next::NoRoom => {
                if !std::mem::replace(&mut work.has_told_of_memory, true) {
                    let memory_bytes_max = self.config.memory_bytes_max;
                    warn!(memory_bytes_max, "kept trees have no more room: folds walk in place of the others");
                }
                // The next look finds what has become free.
                work.is_idle = true;
                return;
            }
            Next::Nothing => {
                work.is_idle = true;
                return;
            }
        };
        let Some(partition) = self.partitions.get(class.partition) else {
            return work.schedule.failed(class, now);
        };
        if work.has_told_of_memory && !has_tree(class) {
            work.has_told_of_memory = false;
            info!("kept trees have room again: those that had none are made");
        }
        match partition.begin_tree(class.n) {
            Ok(Some(build)) => work.build = Some((class, build)),
            Ok(None) => work.schedule.failed(class, now),
            Err(error) => self.failed(work, class, &error.into()),
        }
    }

    fn step(&self, work: &mut Work, (class, mut build): (ClassId, TreeBuild), budget: &mut usize) {
        let Some(partition) = self.partitions.get(class.partition) else { return };
        let pace = 1 << work.schedule.failures(class).min(DOUBLINGS_MAX);
        let step = build.step((*budget * pace).min(STEP_VERSIONS));
        // The locks of keys are not taken with the store of a step.
        match step {
            Ok(BuildStep::More(versions)) => {
                *budget = budget.saturating_sub(versions.div_ceil(pace));
                work.build = Some((class, build));
            }
            Ok(BuildStep::Visited) => {
                let (ended, now) = (partition.end_tree(build), self.runtime.now());
                let Some(end) = ended else {
                    debug!(partition = class.partition, n = class.n, "a build of a tree was in vain");
                    return work.schedule.failed(class, now);
                };
                self.counts.built.add(1);
                self.counts.differences.add(u64::from(end.differences));
                work.schedule.ended(class, now, self.runtime.random_u64().unwrap_or_default());
                debug!(partition = class.partition, n = class.n, versions = end.versions, "a tree was made");
            }
            Err(error) => self.failed(work, class, &error),
        }
    }

    fn failed(&self, work: &mut Work, class: ClassId, error: &BuildFailure) {
        self.counts.failed.add(1);
        if work.schedule.failures(class) == 0 {
            warn!(partition = class.partition, n = class.n, %error, "a tree could not be made; it is tried again");
        }
        work.schedule.failed(class, self.runtime.now());
    }

    /// The room for more trees. If two do not fit, there is one, and it is never made anew.
    fn room(&self) -> Room {
        let (used, tree, max) = (self.memory_bytes(), TREE_BYTES_MAX as u64, self.config.memory_bytes_max);
        let has_one = used + tree <= max;
        Room { has_one, may_be_new: used + 2 * tree <= max || used == 0 && has_one }
    }

    /// What the trees take when all of their leaves are in use. A tree grows after it was made.
    fn memory_bytes(&self) -> u64 {
        let trees = self.partitions.all_open().map(|partition| partition.kept_tree_totals().0 as u64);
        trees.sum::<u64>() * TREE_BYTES_MAX as u64
    }
}

impl Feature for TreeKeeping {
    fn figures(&self) -> Vec<Figure<'_>> {
        let (mut trees, mut bytes) = (0, 0);
        for partition in self.partitions.all_open() {
            let (count, of_partition) = partition.kept_tree_totals();
            (trees, bytes) = (trees + count as u64, bytes + of_partition as u64);
        }
        let figure = |name: &str, metric, help, number| Figure {
            name: format!("ombak_kept_trees{name}"),
            metric,
            label: None,
            help,
            number,
        };
        let counts = &self.counts;
        let total = |sum: &Sum| Number::Total(sum.get());
        let differences = "Leaves of kept trees that were found wrong when the tree was made anew.";
        vec![
            figure("", "kept_trees", "Trees that are kept.", Number::Gauge(trees)),
            figure("_bytes", "kept_trees_bytes", "Memory of kept trees.", Number::Gauge(bytes)),
            figure("_built", "kept_trees_built_total", "Trees that were made to be kept.", total(&counts.built)),
            figure("_failed", "kept_trees_failed_total", "Builds of trees that have failed.", total(&counts.failed)),
            figure("_differences", "kept_trees_differences_total", differences, total(&counts.differences)),
        ]
    }
}
