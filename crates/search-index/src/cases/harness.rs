//! An index in a directory of its own.

use crate::{Index, IndexChange, IndexDocument, IndexError, Question, WRITERS_BYTES_DEFAULT, WriterPool};
use ombak_search::dates::Date;
use ombak_search::document_id::DocumentId;
use ombak_search::extract::Extractor;
use ombak_search::merge::{CursorMark, PartAnswer, SortOrder};
use ombak_search::request::SearchRequest;
use ombak_search::schema::{Schema, default_schema};
use ombak_search::values::DocumentFields;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The time of all searches: the first second of the year 2020.
pub(super) const NOW_MS: i64 = 1_577_836_800_000;

pub(super) const HASH: u64 = 7;

pub(super) struct TestIndex {
    pub(super) dir: tempfile::TempDir,
    pub(super) schema: Arc<Schema>,
    pub(super) index: Option<Index>,
}

pub(super) fn now() -> Date {
    Date::from_unix_ms(NOW_MS).unwrap()
}

pub(super) fn open(dir: &Path, schema: &Arc<Schema>) -> Result<Index, IndexError> {
    Index::open(dir, schema.clone(), HASH, WriterPool::new(WRITERS_BYTES_DEFAULT))
}

/// The document of a key, of JSON.
pub(super) fn document(schema: &Schema, partition: u32, key: &str, json: &str) -> IndexDocument {
    let pairs = Extractor::Json.extract(json.as_bytes()).unwrap();
    IndexDocument {
        id: DocumentId {
            bucket_type: b"t".to_vec(),
            bucket: b"b".to_vec(),
            key: key.as_bytes().to_vec(),
            partition,
            vtag: None,
        },
        vtag: Some(format!("v{key}")),
        has_error: false,
        expires_secs: None,
        fields: DocumentFields::read(schema, &pairs, now()).unwrap(),
    }
}

/// The request of parameters.
pub(super) fn request(parameters: &[(&str, &str)]) -> SearchRequest {
    let pairs: Vec<(String, String)> = parameters.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    SearchRequest::read(&pairs).unwrap()
}

/// What an index answers, of some partitions.
pub(super) fn ask(
    index: &Index,
    parameters: &[(&str, &str)],
    partitions: impl IntoIterator<Item = u32>,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<PartAnswer, IndexError> {
    let request = request(parameters);
    let schema = index.schema().clone();
    let queries = request.read_queries(&schema).unwrap();
    let order = SortOrder::new(&request.sort, &schema).unwrap();
    let cursor = request.cursor_mark.as_deref().and_then(|mark| CursorMark::read(mark, &order).unwrap());
    let facets = request.facets.clone().unwrap_or_default();
    let range_facets: Vec<_> = facets.ranges.iter().map(|facet| facet.buckets(&schema, now()).unwrap()).collect();
    index.answer(&Question {
        request: &request,
        queries: &queries,
        order: &order,
        cursor: cursor.as_ref(),
        range_facets: &range_facets,
        now: now(),
        partitions: &partitions.into_iter().collect::<BTreeSet<u32>>(),
        is_over,
    })
}

/// The keys of hits, in their order.
pub(super) fn keys(answer: &PartAnswer) -> Vec<String> {
    let key = |hit: &ombak_search::merge::Hit| String::from_utf8(DocumentId::read(&hit.id).unwrap().key).unwrap();
    answer.hits.iter().map(key).collect()
}

impl TestIndex {
    pub(super) fn new() -> Self {
        Self::with_schema(default_schema().unwrap())
    }

    pub(super) fn with_schema(schema: Schema) -> Self {
        let (dir, schema) = (tempfile::tempdir().unwrap(), Arc::new(schema));
        let index = Some(open(&dir.path().join("index"), &schema).unwrap());
        Self { dir, schema, index }
    }

    /// An index with documents of the partition 0: keys and JSON.
    pub(super) fn of(documents: &[(&str, &str)]) -> Self {
        let index = Self::new();
        index.put(documents);
        index
    }

    pub(super) fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("index")
    }

    pub(super) fn get(&self) -> &Index {
        self.index.as_ref().unwrap()
    }

    pub(super) fn change(&self, partition: u32, generation: u64, key: &str, jsons: &[&str]) -> IndexChange {
        let documents = jsons.iter().map(|json| document(&self.schema, partition, key, json)).collect();
        IndexChange::Put { partition, generation, key: key.as_bytes().to_vec(), documents }
    }

    pub(super) fn put(&self, documents: &[(&str, &str)]) {
        let changes = documents.iter().map(|(key, json)| self.change(0, 1, key, &[json])).collect();
        self.get().write(changes, "put").unwrap();
    }

    pub(super) fn try_search(&self, parameters: &[(&str, &str)]) -> Result<PartAnswer, IndexError> {
        ask(self.get(), parameters, [0], &|| false)
    }

    pub(super) fn search(&self, parameters: &[(&str, &str)]) -> PartAnswer {
        self.try_search(parameters).unwrap()
    }

    /// The keys that a query finds, sorted.
    pub(super) fn found(&self, query: &str) -> Vec<String> {
        let answer = self.search(&[("q", query), ("sort", "_yz_rk asc"), ("rows", "1000")]);
        assert_eq!(answer.found_count, answer.hits.len() as u64, "{query}");
        keys(&answer)
    }

    /// The keys that a query finds, sorted, in one text.
    pub(super) fn found_text(&self, query: &str) -> String {
        self.found(query).join(" ")
    }
}
