//! The facets of parts, merged.

use super::merger::MergeError;
use super::part_answer::PartFacets;
use super::value_order::ByValue;
use crate::answer::{FacetCounts, FieldCounts, RangeCounts};
use crate::request::{FacetOrder, FacetRequest, FieldFacet, RangeBuckets, RangeFacet};
use crate::values::Value;
use std::collections::BTreeMap;

/// Values of all field facets of a request together.
pub const FACET_VALUES_MAX: usize = 1_000_000;

/// Counts so far.
pub(super) struct Facets<'a> {
    request: &'a FacetRequest,
    buckets: &'a [RangeBuckets],
    queries: Vec<u64>,
    fields: Vec<BTreeMap<ByValue, u64>>,
    ranges: Vec<Vec<u64>>,
    value_count: usize,
}

impl<'a> Facets<'a> {
    /// No counts. There are ranges for each range facet of the request.
    pub(super) fn new(request: &'a FacetRequest, buckets: &'a [RangeBuckets]) -> Result<Self, MergeError> {
        if buckets.len() != request.ranges.len() {
            return Err(MergeError::OtherFacets);
        }
        Ok(Self {
            request,
            buckets,
            queries: vec![0; request.queries.len()],
            fields: vec![BTreeMap::new(); request.fields.len()],
            ranges: buckets.iter().map(|buckets| vec![0; buckets.count()]).collect(),
            value_count: 0,
        })
    }

    /// Adds the counts of a part.
    pub(super) fn add(&mut self, part: PartFacets) -> Result<(), MergeError> {
        add_counts(&mut self.queries, &part.queries)?;
        if part.fields.len() != self.fields.len() || part.ranges.len() != self.ranges.len() {
            return Err(MergeError::OtherFacets);
        }
        for (sums, counts) in self.ranges.iter_mut().zip(&part.ranges) {
            add_counts(sums, counts)?;
        }
        for (sums, counts) in self.fields.iter_mut().zip(part.fields) {
            let before = sums.len();
            for (value, count) in counts {
                let sum = sums.entry(ByValue(value)).or_insert(0);
                *sum = sum.saturating_add(count);
                if self.value_count + sums.len() - before > FACET_VALUES_MAX {
                    return Err(MergeError::TooManyFacetValues);
                }
            }
            self.value_count += sums.len() - before;
        }
        Ok(())
    }

    /// The counts of all parts, of which the request's limits are taken now.
    pub(super) fn finish(self) -> FacetCounts {
        let fields = self.request.fields.iter().zip(self.fields);
        let ranges = self.request.ranges.iter().zip(self.buckets).zip(self.ranges);
        FacetCounts {
            queries: self.request.queries.iter().cloned().zip(self.queries).collect(),
            fields: fields.map(|(facet, sums)| field_counts(facet, sums)).collect(),
            ranges: ranges.filter_map(|((facet, buckets), sums)| range_counts(facet, buckets, &sums)).collect(),
        }
    }
}

fn add_counts(sums: &mut [u64], counts: &[u64]) -> Result<(), MergeError> {
    if sums.len() != counts.len() {
        return Err(MergeError::OtherFacets);
    }
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
    Ok(())
}

fn field_counts(facet: &FieldFacet, sums: BTreeMap<ByValue, u64>) -> FieldCounts {
    let enough = sums.into_iter().filter(|(_, count)| *count >= facet.count_min);
    let mut counts: Vec<(Value, u64)> = enough.map(|(value, count)| (value.0, count)).collect();
    if facet.order == FacetOrder::Count {
        // Equal counts stay in the order of the values.
        counts.sort_by(|(_, a), (_, b)| b.cmp(a));
    }
    counts.truncate(facet.limit.unwrap_or(usize::MAX));
    FieldCounts { field: facet.field.clone(), counts }
}

/// The counts of ranges; `None` if there are no bounds, which a request does not make.
fn range_counts(facet: &RangeFacet, buckets: &RangeBuckets, sums: &[u64]) -> Option<RangeCounts> {
    let enough = buckets.bounds.iter().zip(sums).filter(|(_, count)| **count >= facet.count_min);
    Some(RangeCounts {
        field: facet.field.clone(),
        counts: enough.map(|(low, count)| (low.clone(), *count)).collect(),
        gap: buckets.gap.clone(),
        start: buckets.bounds.first()?.clone(),
        end: buckets.bounds.last()?.clone(),
    })
}
