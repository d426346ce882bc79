//! What a request means in a schema.

use ombak_search::dates::Date;
use ombak_search::merge::{CursorMark, SortOrder};
use ombak_search::request::{Queries, RangeBuckets, RequestError, SearchRequest};
use ombak_search::schema::Schema;

/// What a request means in a schema.
pub(crate) struct Prepared {
    pub(crate) queries: Queries,
    pub(crate) order: SortOrder,
    pub(crate) cursor: Option<CursorMark>,
    pub(crate) ranges: Vec<RangeBuckets>,
}

impl Prepared {
    /// Reads what depends on the schema. `now` is for date math.
    pub(crate) fn new(request: &SearchRequest, schema: &Schema, now: Date) -> Result<Self, RequestError> {
        let queries = request.read_queries(schema)?;
        let order = SortOrder::new(&request.sort, schema)?;
        let cursor = match &request.cursor_mark {
            Some(mark) => CursorMark::read(mark, &order)?,
            None => None,
        };
        let facets = request.facets.iter().flat_map(|facets| &facets.ranges);
        let ranges = facets.map(|facet| facet.buckets(schema, now)).collect::<Result<_, _>>()?;
        Ok(Self { queries, order, cursor, ranges })
    }
}
