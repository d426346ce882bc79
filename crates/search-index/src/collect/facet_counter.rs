//! The counts beside the documents.

use super::field_counts::{FieldCounts, SegmentCounts, check_value_count, once_each};
use crate::document::sortable_of;
use crate::error::IndexError;
use crate::layout::column_name;
use crate::query::{Execution, Plan, Resolver};
use crate::question::Question;
use ombak_search::merge::PartFacets;
use tantivy::columnar::Column;
use tantivy::query::EnableScoring;
use tantivy::{BitSet, DocId, DocSet, Searcher, TERMINATED};

/// The counts of all segments so far.
pub(crate) struct FacetCounter {
    queries: Vec<(Plan, u64)>,
    fields: Vec<FieldCounts>,
    ranges: Vec<RangeCounts>,
}

struct RangeCounts {
    column: String,
    /// The bounds of the ranges, as columns have numbers.
    bounds: Vec<i64>,
    counts: Vec<u64>,
}

/// The counts of a segment.
pub(crate) struct SegmentFacets {
    /// The documents found, if queries or words are counted.
    found: Option<BitSet>,
    fields: Vec<SegmentCounts>,
    ranges: Vec<Option<Column<i64>>>,
}

impl FacetCounter {
    /// No counts; `None` if the search wants none.
    pub(crate) fn new(question: &Question<'_>, resolver: &Resolver<'_>) -> Result<Option<Self>, IndexError> {
        let Some(request) = &question.request.facets else { return Ok(None) };
        if request.ranges.len() != question.range_facets.len() || request.queries.len() != question.queries.facets.len()
        {
            return Err(IndexError::BadQuery(String::from("the facets are not those of the request")));
        }
        let mut queries = Vec::new();
        for query in &question.queries.facets {
            queries.push((resolver.whole(query)?, 0));
        }
        let mut fields = Vec::new();
        for facet in &request.fields {
            fields.push(FieldCounts::new(&facet.field, resolver.field(&facet.field)?));
        }
        let ranges = request.ranges.iter().zip(question.range_facets).map(|(facet, buckets)| RangeCounts {
            column: column_name(&facet.field),
            bounds: buckets.bounds.iter().filter_map(sortable_of).collect(),
            counts: vec![0; buckets.count()],
        });
        Ok(Some(Self { queries, fields, ranges: ranges.collect() }))
    }

    pub(crate) fn open(&self, on: &Execution<'_>) -> Result<SegmentFacets, IndexError> {
        let needs_set = !self.queries.is_empty() || self.fields.iter().any(FieldCounts::needs_set);
        Ok(SegmentFacets {
            found: needs_set.then(|| BitSet::with_max_value(on.reader.max_doc())),
            fields: self.fields.iter().map(|field| field.open(on)).collect::<Result<_, _>>()?,
            ranges: self.ranges.iter().map(|range| on.number_column(&range.column)).collect::<Result<_, _>>()?,
        })
    }

    /// Counts a document.
    pub(crate) fn count(
        &mut self,
        segment: &mut SegmentFacets,
        document: DocId,
        on: &Execution<'_>,
    ) -> Result<(), IndexError> {
        if let Some(found) = &mut segment.found {
            found.insert(document);
        }
        let mut value_count = 0;
        for field in &mut segment.fields {
            field.count(document);
            value_count += field.value_count();
        }
        check_value_count(value_count, on.limits.facet_values)?;
        for (range, column) in self.ranges.iter_mut().zip(&segment.ranges) {
            let Some(column) = column else { continue };
            let places = column.values_for_doc(document).filter_map(|number| place_of(&range.bounds, number));
            once_each(places, |place| {
                if let Some(count) = range.counts.get_mut(place) {
                    *count += 1;
                }
            });
        }
        Ok(())
    }

    /// Adds the counts of a segment.
    pub(crate) fn add(
        &mut self,
        segment: SegmentFacets,
        searcher: &Searcher,
        on: &Execution<'_>,
    ) -> Result<(), IndexError> {
        for (field, counts) in self.fields.iter_mut().zip(segment.fields) {
            field.add(counts, on)?;
        }
        if let Some(found) = &segment.found {
            for (plan, count) in &mut self.queries {
                *count += count_in(plan, found, searcher, on)?;
            }
            for field in self.fields.iter_mut().filter(|field| field.needs_set()) {
                field.add_words(found, on.layout, on)?;
            }
        }
        check_value_count(self.fields.iter().map(FieldCounts::value_count).sum(), on.limits.facet_values)
    }

    pub(crate) fn finish(self) -> PartFacets {
        PartFacets {
            queries: self.queries.into_iter().map(|(_, count)| count).collect(),
            fields: self.fields.into_iter().map(FieldCounts::finish).collect(),
            ranges: self.ranges.into_iter().map(|range| range.counts).collect(),
        }
    }
}

/// The range that a number is in: its bound is not greater, and the next one is.
fn place_of(bounds: &[i64], number: i64) -> Option<usize> {
    let place = bounds.partition_point(|bound| *bound <= number).checked_sub(1)?;
    (place + 1 < bounds.len()).then_some(place)
}

/// How many of the documents found are in a query too.
fn count_in(plan: &Plan, found: &BitSet, searcher: &Searcher, on: &Execution<'_>) -> Result<u64, IndexError> {
    let query = on.query(plan)?;
    let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
    let mut documents = weight.scorer(on.reader, 1.0)?;
    let mut count = 0;
    while documents.doc() != TERMINATED {
        on.step()?;
        count += u64::from(found.contains(documents.doc()));
        documents.advance();
    }
    Ok(count)
}
