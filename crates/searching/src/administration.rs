//! Creates, deletes, rebuilds and describes indexes, and keeps schemas.

use crate::catalog::{
    BadRecord, IndexRecord, NAMESPACE, NameProblem, SchemaRecord, check_index_name, check_schema_name, index_key,
    schema_key,
};
use crate::search::Search;
use ombak_kv::buckets::{IndexUsers, PropsError, RecordEdit};
use ombak_runtime::RuntimeExt;
use ombak_search::schema::{DEFAULT_SCHEMA_NAME, DEFAULT_SCHEMA_XML, Schema, SchemaError, default_schema};
use ombak_search_index::analysis_notes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most replicas of an index.
const N_VAL_MAX: u32 = 255;
/// The most notes that the upload of a schema tells.
const NOTES_MAX: usize = 64;
/// The n_val of an index that does not say another one.
const N_VAL_DEFAULT: u32 = 3;

/// Why an index or schema cannot be changed. `Display` has Riak's texts where Riak has one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdminError {
    /// The name is not valid.
    #[error("{0}")]
    BadName(#[from] NameProblem),
    /// There is no schema with the name.
    #[error("Schema {0} does not exist")]
    NoSchema(String),
    /// The n_val is not valid.
    #[error("n_val has to be an integer from 1 to {N_VAL_MAX}")]
    BadNVal,
    /// There is no such index.
    #[error("not found")]
    NotFound,
    /// Buckets or types name the index.
    #[error("Can't delete index with associate buckets [{0}]")]
    InUse(String),
    /// The schema is wrong. Holds what is wrong.
    #[error("{0}")]
    BadSchema(String),
    /// The records could not be changed.
    #[error("{0}")]
    Refused(PropsError),
}

impl From<PropsError> for AdminError {
    fn from(error: PropsError) -> Self {
        Self::Refused(error)
    }
}

impl From<BadRecord> for AdminError {
    fn from(error: BadRecord) -> Self {
        Self::BadSchema(error.to_string())
    }
}

impl From<SchemaError> for AdminError {
    fn from(error: SchemaError) -> Self {
        Self::BadSchema(error.to_string())
    }
}

/// An index, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// Its name.
    pub name: String,
    /// The name of its schema.
    pub schema: String,
    /// The n_val of its buckets.
    pub n_val: u32,
}

/// How an index stands on this node.
#[derive(Clone, Debug)]
pub struct IndexStatus {
    /// The index.
    pub info: IndexInfo,
    /// The number of the build that answers, and of the one that is being made, if there is one.
    pub builds: (Option<u64>, Option<u64>),
    /// How many documents the build that answers has.
    pub documents: u64,
    /// How many bytes of the disk all builds take.
    pub bytes: u64,
    /// Each partition of this node, for the last build.
    pub partitions: Vec<PartitionStatus>,
    /// Why the last commit failed, if it did.
    pub last_error: Option<String>,
}

/// How an index stands in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The number of the partition.
    pub partition: u32,
    /// How far the index is behind the store; `None` if it does not have everything yet.
    pub lag_ms: Option<u64>,
    /// Whether the whole partition is being read.
    pub is_being_read: bool,
}

impl Search {
    /// All indexes, by name.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.catalog.indexes().iter().map(|(name, record)| info(name, record)).collect()
    }

    /// An index.
    pub fn index(&self, name: &str) -> Option<IndexInfo> {
        self.catalog.index(name).map(|record| info(name, &record))
    }

    /// Creates an index. Creating one that exists changes nothing. Blocks.
    pub fn create_index(&self, name: &str, schema: Option<&str>, n_val: Option<u32>) -> Result<(), AdminError> {
        check_index_name(name)?;
        if self.catalog.index(name).is_some() {
            return Ok(());
        }
        let n_val = n_val.unwrap_or(N_VAL_DEFAULT);
        if !(1..=N_VAL_MAX).contains(&n_val) {
            return Err(AdminError::BadNVal);
        }
        let schema = schema.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_SCHEMA_NAME);
        let xml = self.schema(schema).ok_or_else(|| AdminError::NoSchema(schema.to_owned()))?;
        Schema::read(&xml)?;
        let incarnation = self.runtime.random_u64().map_err(|why| AdminError::BadSchema(why.to_string()))?;
        let record = IndexRecord { schema: schema.to_owned(), xml, n_val, incarnation, build: 0 };
        let value: Arc<str> = record.to_value()?.into();
        self.change(&index_key(name), |present| match present {
            Some(_) => Ok(RecordEdit::Keep),
            None => Ok(RecordEdit::Set(value.clone())),
        })
    }

    /// Deletes an index that no bucket or type names. Blocks.
    pub fn delete_index(&self, name: &str) -> Result<(), AdminError> {
        if self.catalog.index(name).is_none() {
            return Err(AdminError::NotFound);
        }
        let users = self.kv()?.buckets().snapshot().index_users().remove(name).unwrap_or_default();
        if !users.is_empty() {
            return Err(AdminError::InUse(shown(&users)));
        }
        self.change(&index_key(name), |_| Ok(RecordEdit::Remove))
    }

    /// Builds an index anew, with the schema that has its name now. The build of before answers
    /// until the new one has everything. Blocks.
    pub fn rebuild_index(&self, name: &str) -> Result<(), AdminError> {
        let record = self.catalog.index(name).ok_or(AdminError::NotFound)?;
        let xml = self.schema(&record.schema).unwrap_or_else(|| record.xml.clone());
        Schema::read(&xml)?;
        let incarnation = record.incarnation;
        self.change(&index_key(name), |present| {
            let bad = |why: BadRecord| PropsError::BadRecord(why.to_string());
            let Some(present) = present else { return Ok(RecordEdit::Keep) };
            let mut present = IndexRecord::read(present).map_err(bad)?;
            if present.incarnation != incarnation {
                return Ok(RecordEdit::Keep);
            }
            present.build += 1;
            present.xml.clone_from(&xml);
            Ok(RecordEdit::Set(present.to_value().map_err(bad)?.into()))
        })
    }

    /// The bytes of a schema, as they were uploaded.
    pub fn schema(&self, name: &str) -> Option<Vec<u8>> {
        let own = self.catalog.schema(name).map(|record| record.xml.clone());
        own.or_else(|| (name == DEFAULT_SCHEMA_NAME).then(|| DEFAULT_SCHEMA_XML.as_bytes().to_vec()))
    }

    /// The names of all schemas and the bytes of each, by name. The default one is among them.
    pub fn schemas(&self) -> BTreeMap<String, usize> {
        let mut schemas = BTreeMap::from([(DEFAULT_SCHEMA_NAME.to_owned(), DEFAULT_SCHEMA_XML.len())]);
        let own = self.catalog.schemas().into_iter();
        schemas.extend(own.map(|(name, record)| (name, record.xml.len())));
        schemas
    }

    /// Keeps a schema under a name. Indexes that exist keep theirs until they are rebuilt. Returns
    /// what has another effect than in Solr, as far as that fits in [`NOTES_MAX`] notes, and
    /// without what is the same in the default schema. Blocks.
    pub fn put_schema(&self, name: &str, xml: &[u8]) -> Result<Vec<String>, AdminError> {
        check_schema_name(name)?;
        let schema = Schema::read(xml)?;
        let of_default: BTreeSet<String> = analysis_notes(&default_schema()?).into_iter().collect();
        let of_analysis = analysis_notes(&schema).into_iter().filter(|note| !of_default.contains(note));
        let notes = schema.notes.iter().map(ToString::to_string).chain(of_analysis).take(NOTES_MAX).collect();
        let value: Arc<str> = SchemaRecord { xml: xml.to_vec() }.to_value()?.into();
        self.change(&schema_key(name), |_| Ok(RecordEdit::Set(value.clone())))?;
        Ok(notes)
    }

    /// How an index stands on this node.
    pub fn index_status(&self, name: &str) -> Option<IndexStatus> {
        let record = self.catalog.index(name)?;
        let builds = self.builds.of_index(name);
        let number = |build: &Arc<crate::following::IndexFollower>| build.record.build;
        let answering = builds.first();
        let being_made = builds.last().filter(|_| builds.len() > 1);
        let last = builds.last().map(|build| build.status());
        let now = self.runtime.now();
        let mut partitions = Vec::new();
        if let Some(last) = &last {
            let numbers = last.fresh.keys().chain(&last.being_told).collect::<std::collections::BTreeSet<_>>();
            partitions.extend(numbers.into_iter().map(|partition| PartitionStatus {
                partition: *partition,
                lag_ms:
                    last.fresh.get(partition).map(|since| {
                        u64::try_from(now.saturating_duration_since(*since).as_millis()).unwrap_or(u64::MAX)
                    }),
                is_being_read: last.being_told.contains(partition),
            }));
        }
        Some(IndexStatus {
            info: info(name, &record),
            builds: (answering.map(number), being_made.map(number)),
            documents: answering.map_or(0, |build| build.index.figures().documents),
            bytes: builds.iter().map(|build| build.index.figures().bytes_on_disk).sum(),
            partitions,
            last_error: last.and_then(|last| last.last_error),
        })
    }

    fn change(
        &self,
        key: &[u8],
        edit: impl Fn(Option<&str>) -> Result<RecordEdit, PropsError>,
    ) -> Result<(), AdminError> {
        let kv = self.kv()?;
        Ok(kv.buckets().change_record(NAMESPACE, key, |present| edit(present.map(|record| &*record.value)))?)
    }
}

fn info(name: &str, record: &IndexRecord) -> IndexInfo {
    IndexInfo { name: name.to_owned(), schema: record.schema.clone(), n_val: record.n_val }
}

/// Who names an index, for an error. At most ten are named.
fn shown(users: &IndexUsers) -> String {
    let types = users.types.iter().map(|name| format!("type {}", name.escape_ascii()));
    let buckets = users.buckets.iter().map(|bucket| {
        if bucket.is_default_type() {
            bucket.name.escape_ascii().to_string()
        } else {
            format!("{}/{}", bucket.bucket_type.escape_ascii(), bucket.name.escape_ascii())
        }
    });
    let all: Vec<String> = types.chain(buckets).collect();
    let named = all.iter().take(10).cloned().collect::<Vec<_>>().join(",");
    if all.len() > 10 { format!("{named} and {} more", all.len() - 10) } else { named }
}
