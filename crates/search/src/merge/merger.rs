//! Merges the answers of nodes.

use super::cursor_mark::CursorMark;
use super::facets::{FACET_VALUES_MAX, Facets};
use super::part_answer::{Hit, PartAnswer};
use super::sort_order::SortOrder;
use crate::answer::{Header, SearchAnswer};
use crate::request::{RangeBuckets, SearchRequest};
use std::collections::BTreeSet;

/// What merging needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Merge<'a> {
    /// The request.
    pub request: &'a SearchRequest,
    /// Its order.
    pub order: &'a SortOrder,
    /// The document behind which the answer begins; `None` for its cursor's beginning, too.
    pub cursor: Option<&'a CursorMark>,
    /// The ranges of its range facets, in their order.
    pub buckets: &'a [RangeBuckets],
}

/// Answers do not make one together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The facets of a part are not those of the request.
    #[error("a node answered with counts of other facets than it was asked for")]
    OtherFacets,
    /// Too many values.
    #[error(
        "facet.field: the fields have more than {FACET_VALUES_MAX} different values together, which is the most; \
         find fewer documents or take other fields"
    )]
    TooManyFacetValues,
}

impl Merge<'_> {
    /// The answer of all parts. The header is told if the request wants it, and says whether
    /// something is missing. Everything is in memory, so the caller bounds the parts.
    ///
    /// # Errors
    /// The parts have other facets, or too many values of facets.
    pub fn answer(&self, mut header: Header, parts: Vec<PartAnswer>) -> Result<SearchAnswer, MergeError> {
        let mut facets = match &self.request.facets {
            Some(request) => Some(Facets::new(request, self.buckets)?),
            None => None,
        };
        let mut found_count = 0_u64;
        let mut score_max: Option<f32> = None;
        let mut hits = Vec::new();
        for part in parts {
            found_count = found_count.saturating_add(part.found_count);
            score_max = score_max.into_iter().chain(part.score_max).reduce(f32::max);
            hits.extend(part.hits);
            header.is_partial |= part.is_partial;
            if let Some(facets) = &mut facets {
                facets.add(part.facets.ok_or(MergeError::OtherFacets)?)?;
            }
        }
        let double_count = self.sort(&mut hits);
        let page: Vec<Hit> = hits.into_iter().skip(self.request.start).take(self.request.rows).collect();
        Ok(SearchAnswer {
            // An answer that is partial says so, whatever is asked.
            header: (!self.request.omits_header || header.is_partial).then_some(header),
            found_count: found_count.saturating_sub(double_count),
            start: self.request.start,
            // Solr's nodes answer 0 if they find nothing.
            score_max: self.request.needs_scores().then_some(score_max.unwrap_or_default()),
            next_cursor_mark: self.next_cursor_mark(page.last()),
            documents: page.into_iter().map(|hit| hit.document).collect(),
            facets: facets.map(Facets::finish),
        })
    }

    /// Sorts hits, and takes out all but the first of each document and those that a cursor has
    /// passed. How many hits were of a document that was there already.
    fn sort(&self, hits: &mut Vec<Hit>) -> u64 {
        hits.sort_by(|a, b| self.order.compare(a, b));
        let mut seen = BTreeSet::new();
        let is_first: Vec<bool> = hits.iter().map(|hit| seen.insert(hit.id.as_str())).collect();
        let double_count = is_first.iter().filter(|is_first| !**is_first).count() as u64;
        let mut is_first = is_first.into_iter();
        hits.retain(|hit| {
            is_first.next() == Some(true) && self.cursor.is_none_or(|mark| mark.is_before(hit, self.order))
        });
        double_count
    }

    /// The mark of the last document that is told. Without one, the cursor stays where it is, which
    /// tells the client that it is at the end.
    fn next_cursor_mark(&self, last: Option<&Hit>) -> Option<String> {
        let given = self.request.cursor_mark.as_ref()?;
        Some(last.map_or_else(|| given.clone(), |hit| CursorMark::of(hit).to_text(self.order)))
    }
}
