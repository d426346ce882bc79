//! A set of documents of a segment that was found before, as a query of the library.

use std::sync::Arc;
use tantivy::query::{BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{BitSet, DocId, DocSet, Score, SegmentReader, TERMINATED};

/// Bits of a set that cost as much as one number of a list.
const BITS_OF_A_NUMBER: usize = 32;

/// A set of documents of a segment, while it grows.
#[derive(Clone)]
pub(crate) enum FoundDocuments {
    /// In any order, with repetitions.
    Few(Vec<DocId>),
    Many(BitSet),
}

impl FoundDocuments {
    pub(crate) fn new() -> Self {
        Self::Few(Vec::new())
    }

    /// Adds documents of a segment with a number of documents.
    pub(crate) fn extend(&mut self, documents: &[DocId], max_doc: u32) {
        match self {
            Self::Few(few) if few.len() + documents.len() <= max_doc as usize / BITS_OF_A_NUMBER => {
                few.extend_from_slice(documents);
            }
            Self::Few(few) => {
                let mut many = BitSet::with_max_value(max_doc);
                for document in few.iter().chain(documents).filter(|document| **document < max_doc) {
                    many.insert(*document);
                }
                *self = Self::Many(many);
            }
            Self::Many(many) => {
                for document in documents.iter().filter(|document| **document < max_doc) {
                    many.insert(*document);
                }
            }
        }
    }

    /// The memory that the set takes, about.
    pub(crate) fn byte_count(&self) -> usize {
        match self {
            Self::Few(few) => few.len() * size_of::<DocId>(),
            Self::Many(many) => many.max_value() as usize / 8,
        }
    }

    /// The query for the set, in the segment that it is of.
    pub(crate) fn into_query(mut self) -> Box<dyn Query> {
        if let Self::Few(few) = &mut self {
            few.sort_unstable();
            few.dedup();
        }
        Box::new(FoundQuery(Arc::new(self)))
    }
}

/// Finds a set, in the segment that it is of. All documents are equally good.
#[derive(Clone)]
struct FoundQuery(Arc<FoundDocuments>);

impl std::fmt::Debug for FoundQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FoundQuery")
    }
}

impl Query for FoundQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for FoundQuery {
    fn scorer(&self, _: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(match &*self.0 {
            FoundDocuments::Few(few) => Box::new(ConstScorer::new(List::new(few.clone()), boost)),
            FoundDocuments::Many(many) => Box::new(ConstScorer::new(BitSetDocSet::from(many.clone()), boost)),
        })
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Ok(Explanation::new("documents that were found before", 1.0))
    }
}

/// A sorted list.
struct List {
    documents: Vec<DocId>,
    at: usize,
}

impl List {
    fn new(documents: Vec<DocId>) -> Self {
        Self { documents, at: 0 }
    }
}

impl DocSet for List {
    fn advance(&mut self) -> DocId {
        self.at += 1;
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let rest = self.documents.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|document| *document < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.documents.get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn size_hint(&self) -> u32 {
        u32::try_from(self.documents.len()).unwrap_or(u32::MAX)
    }
}
