//! The search of a node.

use crate::administration::AdminError;
use crate::answering::LocalAnswers;
use crate::catalog::Catalog;
use crate::config::SearchConfig;
use crate::counts::{SearchCounts, SearchFigures};
use crate::following::Builds;
use crate::querying::{Found, Query, SearchError};
use ombak_kv::buckets::{PropsError, RecordNamespace};
use ombak_kv::hooks::{ConsumerSource, FeatureAnswers};
use ombak_kv::{Kv, MemoryReservation, WeakKv};
use ombak_runtime::Runtime;
use ombak_search::schema::Schema;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The search of a node. The node gives it the hooks below before it opens its engine, and the
/// engine afterwards.
pub struct Search {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) builds: Arc<Builds>,
    counts: Arc<SearchCounts>,
    freshness: std::time::Duration,
    kv: OnceLock<WeakKv>,
    /// The schemas of indexes, read, by incarnation and build.
    schemas: Mutex<BTreeMap<(u64, u64), Arc<Schema>>>,
}

/// How many schemas are kept read.
const SCHEMAS_MAX: usize = 64;

impl Search {
    /// The search of a node. It reads no files yet.
    pub fn new(config: SearchConfig, runtime: Arc<dyn Runtime>) -> Arc<Self> {
        let catalog = Arc::<Catalog>::default();
        let freshness = config.freshness;
        let counts = Arc::<SearchCounts>::default();
        let builds = Arc::new(Builds::new(config, catalog.clone(), counts.clone()));
        let (kv, schemas) = (OnceLock::new(), Mutex::default());
        Arc::new(Self { runtime, catalog, builds, counts, freshness, kv, schemas })
    }

    /// The records of search in the metadata.
    pub fn namespace(&self) -> Arc<dyn RecordNamespace> {
        self.catalog.clone()
    }

    /// What follows the stores.
    pub fn consumer_source(&self) -> Arc<dyn ConsumerSource> {
        self.builds.clone()
    }

    /// What answers the questions of nodes.
    pub fn feature_answers(&self) -> Arc<dyn FeatureAnswers> {
        Arc::new(LocalAnswers::new(self.builds.clone(), self.runtime.clone(), self.freshness))
    }

    /// Takes the engine of the node, once. A member knows the records of its cluster by then.
    pub fn attach(&self, kv: &Kv) {
        // Whoever attaches a second engine would mix two nodes. The first one stays.
        if self.kv.set(kv.downgrade()).is_ok() {
            let (counts, builds, runtime) = (self.counts.clone(), self.builds.clone(), self.runtime.clone());
            kv.stats().attach(Arc::new(SearchFigures { counts, builds, now: Box::new(move || runtime.now()) }));
        }
        self.builds.attach();
    }

    /// Carries out a query over all nodes. What they send is reserved in `room`.
    ///
    /// # Errors
    /// There is no such index, the request is wrong, or the nodes cannot answer.
    pub async fn query(
        &self,
        index: &str,
        parameters: &[(String, String)],
        room: &mut dyn MemoryReservation,
    ) -> Result<Found, SearchError> {
        let began = self.runtime.now();
        let found = self.query_until(index, parameters, None, room).await;
        self.counts.query_ended(found.is_ok(), self.runtime.now().saturating_duration_since(began));
        found
    }

    /// The same, for a caller that does not need the answer after `deadline`.
    pub(crate) async fn query_until(
        &self,
        index: &str,
        parameters: &[(String, String)],
        deadline: Option<Instant>,
        room: &mut dyn MemoryReservation,
    ) -> Result<Found, SearchError> {
        let record = self.catalog.index(index).ok_or_else(|| SearchError::NoIndex(index.to_owned()))?;
        let kv = self.kv.get().and_then(WeakKv::upgrade).ok_or(SearchError::Failed(ombak_types::Error::Stopping))?;
        let schema = self.read_schema(&record)?;
        Query { kv: &kv, runtime: &*self.runtime, index, record, schema, parameters, deadline }.run(room).await
    }

    fn read_schema(&self, record: &crate::catalog::IndexRecord) -> Result<Arc<Schema>, SearchError> {
        let id = (record.incarnation, record.build);
        if let Some(schema) = self.schemas.lock().get(&id) {
            return Ok(schema.clone());
        }
        let schema = Schema::read(&record.xml).map_err(|why| SearchError::BadRequest(why.to_string()))?;
        let schema = Arc::new(schema);
        let mut schemas = self.schemas.lock();
        if schemas.len() >= SCHEMAS_MAX {
            schemas.clear();
        }
        schemas.insert(id, schema.clone());
        Ok(schema)
    }

    /// The engine, to change its records.
    pub(crate) fn kv(&self) -> Result<Kv, AdminError> {
        let kv = self.kv.get().and_then(WeakKv::upgrade);
        kv.ok_or_else(|| PropsError::Refused("the node is stopping".into()).into())
    }
}
