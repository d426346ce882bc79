//! The index of a node for one search index.

use crate::analyzers::Analyzers;
use crate::answering;
use crate::change::{IndexChange, IndexDocument};
use crate::document::{DocumentMaker, KEY_BYTES_MAX};
use crate::error::{IndexError, guarded};
use crate::figures::Figures;
use crate::layout::Layout;
use crate::merges;
use crate::opening;
use crate::query::limits::Limits;
use crate::question::Question;
use crate::writer_pool::{OpenWriter, Owner, WriterPool};
use ombak_search::merge::PartAnswer;
use ombak_search::schema::Schema;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tantivy::query::{BooleanQuery, Occur, Query, RangeQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, Term};

/// The index of a node for one search index.
pub struct Index {
    dir: PathBuf,
    schema: Arc<Schema>,
    layout: Layout,
    analyzers: Analyzers,
    library: tantivy::Index,
    reader: IndexReader,
    writers: Arc<WriterPool>,
    owner: Owner,
    /// One write at a time.
    write: Mutex<()>,
    place: RwLock<String>,
    last_commit_us: AtomicU64,
    refused_count: AtomicU64,
    limits: Limits,
}

/// A write that is durable.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// How long it took.
    pub took: Duration,
    /// How many of its documents cannot be in an index.
    pub refused_count: u64,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index of a directory, or creates it. The hash is of the text of the schema.
    ///
    /// # Errors
    /// The files are damaged, have another format or are of another schema: the caller removes the
    /// directory and begins anew. Or the disk refuses something.
    pub fn open(
        dir: &Path,
        schema: Arc<Schema>,
        schema_text_hash: u64,
        writers: Arc<WriterPool>,
    ) -> Result<Self, IndexError> {
        let layout = Layout::new();
        let library = opening::open(dir, &layout, schema_text_hash)?;
        let place = guarded(|| Ok(library.load_metas()?.payload.unwrap_or_default()))?;
        let reader = guarded(|| {
            Ok(library.reader_builder().reload_policy(ReloadPolicy::Manual).num_warming_threads(1).try_into()?)
        })?;
        Ok(Self {
            dir: dir.to_owned(),
            analyzers: Analyzers::new(&schema),
            schema,
            layout,
            library,
            reader,
            owner: writers.new_owner(),
            writers,
            write: Mutex::new(()),
            place: RwLock::new(place),
            last_commit_us: AtomicU64::new(0),
            refused_count: AtomicU64::new(0),
            limits: Limits::default(),
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// What the caller gave with the last write; empty at first.
    pub fn place(&self) -> String {
        self.place.read().clone()
    }

    /// Carries out changes, and makes them durable together with the place: after a crash all of
    /// them are there, or none. Searches see them when this returns. It blocks, also while other
    /// indexes have all writers.
    ///
    /// # Errors
    /// The disk refuses something, or files are damaged. Nothing of the changes is seen then, but
    /// after the next opening they can be there with their place.
    pub fn write(&self, changes: Vec<IndexChange>, place: &str) -> Result<Written, IndexError> {
        let _one_at_a_time = self.write.lock();
        let mut lease = self.writers.lease(self.owner, &self.library)?;
        let start = Instant::now();
        let refused_before = self.refused_count.load(Ordering::Relaxed);
        guarded(|| {
            let open = lease.writer()?;
            for change in changes {
                self.change(&open.writer, change)?;
            }
            let mut commit = open.writer.prepare_commit()?;
            commit.set_payload(place);
            commit.commit()?;
            // The library makes its files durable, and then renames its list of them.
            opening::sync_directory(&self.dir)?;
            self.reader.reload()?;
            place.clone_into(&mut self.place.write());
            self.merge(open);
            Ok(())
        })?;
        lease.keep();
        let took = start.elapsed();
        self.last_commit_us.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(Written { took, refused_count: self.refused_count.load(Ordering::Relaxed) - refused_before })
    }

    /// Goes on with merging. What fails here does not undo the commit.
    fn merge(&self, open: &mut OpenWriter) {
        let result = merges::go_on(open).and_then(|has_ended| {
            if has_ended {
                self.reader.reload()?;
            }
            Ok(())
        });
        if let Err(error) = result {
            tracing::warn!(%error, "segments of a search index could not be merged");
        }
    }

    fn change(&self, writer: &IndexWriter, change: IndexChange) -> Result<(), IndexError> {
        match change {
            IndexChange::Put { partition, generation, key, documents } => {
                if self.remove(writer, &key) {
                    for document in &documents {
                        self.add(writer, partition, generation, &key, document)?;
                    }
                } else {
                    self.refuse(documents.len(), "its key is too long");
                }
            }
            IndexChange::Remove { key } => {
                self.remove(writer, &key);
            }
            IndexChange::Sweep { partition, generation } => {
                let older = Term::from_field_u64(self.layout.generation, generation);
                let clauses: Vec<(Occur, Box<dyn Query>)> = vec![
                    (Occur::Must, Box::new(self.of_partition(partition))),
                    (Occur::Must, Box::new(RangeQuery::new(Bound::Unbounded, Bound::Excluded(older)))),
                ];
                writer.delete_query(Box::new(BooleanQuery::new(clauses)))?;
            }
        }
        Ok(())
    }

    /// Removes the documents of a key. Whether there can be any.
    fn remove(&self, writer: &IndexWriter, key: &[u8]) -> bool {
        if key.len() > KEY_BYTES_MAX {
            return false;
        }
        writer.delete_term(Term::from_field_bytes(self.layout.key, key));
        true
    }

    fn add(
        &self,
        writer: &IndexWriter,
        partition: u32,
        generation: u64,
        key: &[u8],
        document: &IndexDocument,
    ) -> Result<(), IndexError> {
        let maker = DocumentMaker { layout: &self.layout, schema: &self.schema, analyzers: &self.analyzers };
        // A panic over one value must not count as damage: the index would be built anew for ever.
        let made = catch_unwind(AssertUnwindSafe(|| maker.make(partition, generation, key, document)));
        match made {
            Ok(Ok(document)) => return writer.add_document(document).map(|_| ()).map_err(IndexError::from),
            Ok(Err(bad)) => self.refuse(1, &bad.to_string()),
            Err(_) => self.refuse(1, "the code that reads it panicked"),
        }
        Ok(())
    }

    /// Lucene refuses such documents too. An error would stop the feed at this object for ever.
    fn refuse(&self, count: usize, why: &str) {
        self.refused_count.fetch_add(count as u64, Ordering::Relaxed);
        tracing::warn!(why, "a document cannot be in a search index");
    }

    fn of_partition(&self, partition: u32) -> TermQuery {
        let term = Term::from_field_u64(self.layout.partition, u64::from(partition));
        TermQuery::new(term, IndexRecordOption::Basic)
    }

    /// Answers a search, of the documents that the last write left.
    ///
    /// # Errors
    /// The query cannot be, costs too much or has no time left; or files are damaged.
    pub fn answer(&self, question: &Question<'_>) -> Result<PartAnswer, IndexError> {
        guarded(|| {
            let searcher = self.reader.searcher();
            answering::answer(&searcher, &self.layout, &self.schema, &self.analyzers, self.limits, question)
        })
    }

    /// Makes limits smaller.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// How large the index is.
    pub fn figures(&self) -> Figures {
        let searcher = self.reader.searcher();
        let segments = searcher.segment_readers();
        let last_commit_us = self.last_commit_us.load(Ordering::Relaxed);
        Figures {
            documents: searcher.num_docs(),
            documents_deleted: segments.iter().map(|segment| u64::from(segment.num_deleted_docs())).sum(),
            documents_refused: self.refused_count.load(Ordering::Relaxed),
            bytes_on_disk: opening::bytes_on_disk(&self.dir).unwrap_or_default(),
            segments: segments.len() as u64,
            last_commit: (last_commit_us > 0).then(|| Duration::from_micros(last_commit_us)),
        }
    }

    /// How many documents each partition has, with those that were removed and still take room.
    ///
    /// # Errors
    /// A file is damaged or cannot be read.
    pub fn partitions(&self) -> Result<BTreeMap<u32, u64>, IndexError> {
        guarded(|| {
            let mut counts = BTreeMap::new();
            for segment in self.reader.searcher().segment_readers() {
                let inverted = segment.inverted_index(self.layout.partition)?;
                let mut terms = inverted.terms().stream()?;
                while let Some((key, info)) = terms.next() {
                    let partition = key.try_into().map(u64::from_be_bytes).ok();
                    if let Some(partition) = partition.and_then(|partition| u32::try_from(partition).ok()) {
                        *counts.entry(partition).or_default() += u64::from(info.doc_freq);
                    }
                }
            }
            Ok(counts)
        })
    }

    /// Reads all files and compares their checksums. Opening does so for small indexes only.
    ///
    /// # Errors
    /// A file is damaged or cannot be read.
    pub fn check(&self) -> Result<(), IndexError> {
        guarded(|| opening::check_sums(&self.library))
    }
}

impl Index {
    /// Closes its writer, if that is idle. It blocks until merges that are under way have ended, so
    /// that nothing writes any more to files that are about to be removed.
    pub fn close_writer(&self) {
        self.writers.forget(self.owner);
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.writers.forget(self.owner);
    }
}
