//! The jobs of a node.

use crate::JobsConfig;
use crate::counts::JobCounts;
use crate::local::LocalParts;
use crate::owner::RunningJob;
use crate::part::{NoPartNodes, PartClient, PartNodes};
use ombak_kv::Kv;
use ombak_mapreduce::{BucketAccess, Job};
use ombak_runtime::Runtime;
use ombak_types::NodeId;
use std::sync::Arc;

/// The jobs of a node. Cheap to clone: clones share everything.
#[derive(Clone)]
pub struct Jobs {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) kv: Kv,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) config: JobsConfig,
    pub(crate) counts: Arc<JobCounts>,
    nodes: Arc<dyn PartNodes>,
    local: LocalParts,
}

impl Jobs {
    /// Prepares a node for jobs, once. Its threads begin with the first job. The statistics of the
    /// node show what is counted about jobs.
    pub fn new(kv: Kv, config: JobsConfig, nodes: Arc<dyn PartNodes>) -> Self {
        let counts: Arc<JobCounts> = Arc::default();
        kv.stats().attach(counts.clone());
        Self::counted(kv, config, nodes, counts)
    }

    /// Prepares a node that is alone. The statistics of the node do not show its jobs.
    pub fn alone(kv: Kv) -> Self {
        Self::counted(kv, JobsConfig::default(), Arc::new(NoPartNodes), Arc::default())
    }

    fn counted(kv: Kv, config: JobsConfig, nodes: Arc<dyn PartNodes>, counts: Arc<JobCounts>) -> Self {
        let runtime = kv.shared_runtime().clone();
        let local = LocalParts::new(kv.clone(), runtime.clone(), config.clone(), counts.clone());
        Self { inner: Arc::new(Inner { kv, runtime, config, counts, nodes, local }) }
    }

    /// Begins a job. Nothing is done before its results are asked for. `access` decides which
    /// buckets it may read; without it, all.
    pub fn run(&self, job: Job, access: Option<Arc<dyn BucketAccess>>) -> RunningJob {
        RunningJob::new(self.inner.clone(), job, access)
    }

    /// The work of this node on parts, for other nodes too.
    pub fn local_parts(&self) -> &LocalParts {
        &self.inner.local
    }
}

impl Inner {
    /// A node as one that works on parts.
    pub(crate) fn part_client(&self, node: NodeId) -> Arc<dyn PartClient> {
        if node == self.kv.identity().node_id {
            return Arc::new(self.local.clone());
        }
        self.nodes.part_client(node)
    }

    pub(crate) const fn local(&self) -> &LocalParts {
        &self.local
    }
}
