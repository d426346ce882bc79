//! The first documents in an order.

use super::segment_order::{Key, SegmentOrder};
use crate::error::IndexError;
use crate::query::Execution;
use ombak_search::merge::{Hit, SortOrder};
use std::collections::BinaryHeap;
use tantivy::{DocAddress, DocId};

/// The first documents of a segment.
pub(crate) struct SegmentTop {
    window: usize,
    /// The last one of them on top.
    heap: BinaryHeap<Entry>,
    keys: Vec<Key>,
}

/// A document, compared by its keys and its unique key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    keys: Box<[Key]>,
    id: u64,
    document: DocId,
    score_bits: u32,
}

impl SegmentTop {
    pub(crate) fn new(window: usize) -> Self {
        Self { window, heap: BinaryHeap::new(), keys: Vec::new() }
    }

    pub(crate) fn offer(&mut self, document: DocId, score: f32, order: &SegmentOrder) {
        if self.window == 0 {
            return;
        }
        order.keys_into(document, score, &mut self.keys);
        let is_full = self.heap.len() == self.window;
        if is_full && self.heap.peek().is_some_and(|last| self.keys[..] > last.keys[..]) {
            return;
        }
        if !order.is_behind_cursor(&self.keys) {
            return;
        }
        let entry = Entry {
            keys: self.keys.as_slice().into(),
            id: order.id_number(document),
            document,
            score_bits: score.to_bits(),
        };
        if !is_full {
            self.heap.push(entry);
        } else if let Some(mut last) = self.heap.peek_mut()
            && entry < *last
        {
            *last = entry;
        }
    }
}

/// The first documents of all segments so far.
#[derive(Default)]
pub(crate) struct Top {
    pub(crate) candidates: Vec<Candidate>,
}

/// A document that is among the first ones so far.
pub(crate) struct Candidate {
    /// The hit, still without fields.
    pub(crate) hit: Hit,
    pub(crate) address: DocAddress,
    pub(crate) score: f32,
}

impl Top {
    /// Adds the first documents of a segment.
    pub(crate) fn add(
        &mut self,
        segment: SegmentTop,
        segment_number: u32,
        segment_order: &SegmentOrder,
        order: &SortOrder,
        on: &Execution<'_>,
    ) -> Result<(), IndexError> {
        let window = segment.window;
        let entries = segment.heap.into_sorted_vec();
        on.check_time()?;
        let ids: Vec<u64> = entries.iter().map(|entry| entry.id).collect();
        let documents: Vec<(DocId, f32)> =
            entries.iter().map(|entry| (entry.document, f32::from_bits(entry.score_bits))).collect();
        let (ids, values) = (segment_order.ids(&ids)?, segment_order.values(&documents)?);
        for (((document, score), id), sort_values) in documents.into_iter().zip(ids).zip(values) {
            let hit = Hit { id, sort_values, ..Hit::default() };
            self.candidates.push(Candidate { hit, address: DocAddress::new(segment_number, document), score });
        }
        self.candidates.sort_by(|a, b| order.compare(&a.hit, &b.hit));
        self.candidates.truncate(window);
        Ok(())
    }
}
