//! Answers a search: one segment after the other.

use crate::analyzers::Analyzers;
use crate::collect::{FacetCounter, SegmentOrder, SegmentTop, Told, Top};
use crate::error::IndexError;
use crate::layout::{EXPIRES, Layout, PARTITION};
use crate::query::limits::Limits;
use crate::query::{Execution, Plan, Resolver};
use crate::question::Question;
use ombak_search::merge::PartAnswer;
use ombak_search::schema::Schema;
use std::cell::Cell;
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, ConstScoreQuery, EnableScoring, Occur, Query};
use tantivy::{DocId, DocSet, Searcher, TERMINATED};

struct Answering<'a> {
    searcher: &'a Searcher,
    question: &'a Question<'a>,
    plan: Plan,
    filters: Vec<Plan>,
    needs_scores: bool,
    top: Top,
    facets: Option<FacetCounter>,
    found_count: u64,
    score_max: Option<f32>,
}

/// The answer of an index.
pub(crate) fn answer(
    searcher: &Searcher,
    layout: &Layout,
    schema: &Schema,
    analyzers: &Analyzers,
    limits: Limits,
    question: &Question<'_>,
) -> Result<PartAnswer, IndexError> {
    let operator = question.request.operator.unwrap_or(schema.default_operator);
    let resolver = Resolver { schema, layout, analyzers, now: question.now, operator };
    let whole = |query| resolver.whole(query);
    let mut answering = Answering {
        searcher,
        question,
        plan: question.queries.query.as_ref().map_or(Ok(Plan::Nothing), whole)?,
        filters: question.queries.filters.iter().map(whole).collect::<Result<_, _>>()?,
        needs_scores: question.request.needs_scores(),
        top: Top::default(),
        facets: FacetCounter::new(question, &resolver)?,
        found_count: 0,
        score_max: None,
    };
    let matched_terms = Cell::new(0);
    for (number, reader) in (0..).zip(searcher.segment_readers()) {
        let on = Execution {
            reader,
            layout,
            is_over: question.is_over,
            matched_terms: &matched_terms,
            limits,
            has_scores: answering.needs_scores,
            set_bytes: Cell::new(0),
            steps: Cell::new(0),
        };
        on.check_time()?;
        answering.segment(number, &on)?;
    }
    let fields = &question.request.fields;
    let told = Told { searcher, layout, schema, fields, is_over: question.is_over, bytes_max: limits.told_bytes };
    Ok(PartAnswer {
        found_count: answering.found_count,
        score_max: answering.score_max,
        hits: told.hits(answering.top)?,
        facets: answering.facets.map(FacetCounter::finish),
        is_partial: false,
    })
}

impl Answering<'_> {
    fn segment(&mut self, number: u32, on: &Execution<'_>) -> Result<(), IndexError> {
        let query = self.query(on)?;
        let scoring = if self.needs_scores {
            EnableScoring::enabled_from_searcher(self.searcher)
        } else {
            EnableScoring::disabled_from_searcher(self.searcher)
        };
        let weight = query.weight(scoring)?;
        let mut documents = weight.scorer(on.reader, 1.0)?;
        let asked = Asked::open(self.question, on)?;
        let living = Living::open(self.question, on)?;
        let order = SegmentOrder::open(self.question.order, self.question.cursor, on)?;
        let mut top = SegmentTop::new(self.question.request.window());
        let mut facets = self.facets.as_ref().map(|facets| facets.open(on)).transpose()?;
        while documents.doc() != TERMINATED {
            on.step()?;
            let document = documents.doc();
            if !on.reader.is_deleted(document) && asked.has(document) && living.has(document) {
                let score = if self.needs_scores { documents.score() } else { 0.0 };
                self.found_count += 1;
                if self.needs_scores {
                    self.score_max = self.score_max.into_iter().chain([score]).reduce(f32::max);
                }
                if let (Some(counter), Some(facets)) = (&mut self.facets, &mut facets) {
                    counter.count(facets, document, on)?;
                }
                top.offer(document, score, &order);
            }
            documents.advance();
        }
        if let (Some(counter), Some(facets)) = (&mut self.facets, facets) {
            counter.add(facets, self.searcher, on)?;
        }
        self.top.add(top, number, &order, self.question.order, on)
    }

    /// The query with its filters, which add nothing to the score.
    fn query(&self, on: &Execution<'_>) -> Result<Box<dyn Query>, IndexError> {
        let query = on.query(&self.plan)?;
        if self.filters.is_empty() {
            return Ok(query);
        }
        let mut clauses = vec![(Occur::Must, query)];
        for filter in &self.filters {
            let filter: Box<dyn Query> = Box::new(ConstScoreQuery::new(on.query(filter)?, 0.0));
            clauses.push((Occur::Must, filter));
        }
        Ok(Box::new(BooleanQuery::new(clauses)))
    }
}

/// Which documents are of the partitions that are asked for.
struct Asked<'a> {
    partitions: &'a std::collections::BTreeSet<u32>,
    column: Column<u64>,
    /// Whether the segment has documents of one partition only, and whether it is asked for.
    all: Option<bool>,
}

impl<'a> Asked<'a> {
    fn open(question: &'a Question<'_>, on: &Execution<'_>) -> Result<Self, IndexError> {
        let column = on.reader.fast_fields().u64(PARTITION)?;
        let mut asked = Self { partitions: question.partitions, column, all: None };
        let (least, most) = (asked.column.min_value(), asked.column.max_value());
        if least == most {
            asked.all = Some(asked.is_asked(least));
        }
        Ok(asked)
    }

    fn is_asked(&self, partition: u64) -> bool {
        u32::try_from(partition).is_ok_and(|partition| self.partitions.contains(&partition))
    }

    fn has(&self, document: DocId) -> bool {
        self.all.unwrap_or_else(|| self.column.first(document).is_some_and(|partition| self.is_asked(partition)))
    }
}

/// Which documents have not expired at the moment of the question.
struct Living {
    now_secs: u64,
    /// `None`: no document of the segment has expired.
    column: Option<Column<u64>>,
}

impl Living {
    fn open(question: &Question<'_>, on: &Execution<'_>) -> Result<Self, IndexError> {
        let now_secs = u64::try_from(question.now.unix_ms() / 1_000).unwrap_or(0);
        let column = on.reader.fast_fields().column_opt::<u64>(EXPIRES)?;
        let column = column.filter(|column| column.min_value() < now_secs);
        Ok(Self { now_secs, column })
    }

    fn has(&self, document: DocId) -> bool {
        let expires = self.column.as_ref().and_then(|column| column.first(document));
        expires.is_none_or(|expires| expires >= self.now_secs)
    }
}
