//! Carries out a plan in a segment.

use super::found_documents::FoundDocuments;
use super::limits::Limits;
use super::phrase;
use super::plan::{PhrasePlan, Plan, TermsPlan};
use crate::error::IndexError;
use crate::layout::Layout;
use std::cell::Cell;
use std::ops::Bound;
use tantivy::columnar::{Column, ColumnType, DynamicColumn, StrColumn, TermOrdHit};
use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{SegmentReader, Term};

/// Steps between two questions whether the time is over.
const STEPS: u32 = 512;

/// Documents of a column between two of them.
const COLUMN_STEP: u32 = 1 << 16;

/// Terms of a range of strings that are looked at one by one. For more, the column is read.
const TERMS_BEFORE_COLUMN: usize = 1_024;

/// A search in a segment.
pub(crate) struct Execution<'a> {
    pub(crate) reader: &'a SegmentReader,
    pub(crate) layout: &'a Layout,
    pub(crate) is_over: &'a (dyn Fn() -> bool + Sync),
    /// Terms that patterns have matched, in all segments.
    pub(crate) matched_terms: &'a Cell<usize>,
    pub(crate) limits: Limits,
    /// Whether documents are scored.
    pub(crate) has_scores: bool,
    /// Bytes of the sets of this segment.
    pub(crate) set_bytes: Cell<usize>,
    pub(crate) steps: Cell<u32>,
}

impl Execution<'_> {
    /// Asks now and then whether the time is over.
    pub(crate) fn step(&self) -> Result<(), IndexError> {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS) { self.check_time() } else { Ok(()) }
    }

    pub(crate) fn check_time(&self) -> Result<(), IndexError> {
        if (self.is_over)() { Err(IndexError::TimedOut) } else { Ok(()) }
    }

    /// The library's query for a plan in this segment.
    pub(crate) fn query(&self, plan: &Plan) -> Result<Box<dyn Query>, IndexError> {
        self.step()?;
        Ok(match plan {
            Plan::All => Box::new(AllQuery),
            Plan::Nothing => Box::new(EmptyQuery),
            Plan::Term(term) => self.term(term),
            Plan::Exists(term) => Box::new(ConstScoreQuery::new(self.term(term), 1.0)),
            Plan::Phrase(phrase) => self.phrase(phrase)?,
            Plan::Terms(terms) => self.set(self.terms(terms)?)?,
            Plan::Numbers { column, low, high } => self.set(self.numbers(column, *low, *high)?)?,
            Plan::Group(clauses) => self.group(clauses)?,
            Plan::Boosted(plan, factor) => Box::new(BoostQuery::new(self.query(plan)?, *factor)),
        })
    }

    fn term(&self, term: &Term) -> Box<dyn Query> {
        let is_words = term.field() == self.layout.words;
        let record = if is_words { IndexRecordOption::WithFreqs } else { IndexRecordOption::Basic };
        Box::new(TermQuery::new(term.clone(), record))
    }

    fn group(&self, clauses: &[(Occur, Plan)]) -> Result<Box<dyn Query>, IndexError> {
        if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
            return Ok(Box::new(EmptyQuery));
        }
        let mut queries = Vec::with_capacity(clauses.len());
        for (occur, plan) in clauses {
            queries.push((*occur, self.query(plan)?));
        }
        Ok(Box::new(BooleanQuery::new(queries)))
    }

    /// A phrase: the set of its documents, scored by its words. (The library's own phrases panic or
    /// err inside some groups, and have another rule for slop.)
    fn phrase(&self, plan: &PhrasePlan) -> Result<Box<dyn Query>, IndexError> {
        let found = self.set(phrase::find(plan, self)?)?;
        if !self.has_scores {
            return Ok(found);
        }
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = vec![(Occur::Must, Box::new(ConstScoreQuery::new(found, 0.0)))];
        let words = plan.places.iter().flat_map(|(_, terms)| terms);
        clauses.extend(words.map(|word| (Occur::Should, self.term(word))));
        Ok(Box::new(BooleanQuery::new(clauses)))
    }

    /// The query for a set, if there is memory for it.
    fn set(&self, found: FoundDocuments) -> Result<Box<dyn Query>, IndexError> {
        self.set_bytes.set(self.set_bytes.get() + found.byte_count());
        let most = self.limits.set_bytes;
        if self.set_bytes.get() > most {
            let text = format!(
                "the ranges and patterns of the query find more documents than fit in {most} bytes, which is \
                 the most; use fewer of them"
            );
            return Err(IndexError::TooCostly(text));
        }
        Ok(found.into_query())
    }

    fn terms(&self, plan: &TermsPlan) -> Result<FoundDocuments, IndexError> {
        let field = if plan.is_words { self.layout.words } else { self.layout.exact };
        let inverted = self.reader.inverted_index(field)?;
        let (from, to) = plan.matcher.bounds(&plan.prefix);
        let max_doc = self.reader.max_doc();
        let mut found = FoundDocuments::new();
        let mut range = inverted.terms().range();
        range = match &from {
            Bound::Included(from) => range.ge(from),
            Bound::Excluded(from) => range.gt(from),
            Bound::Unbounded => range,
        };
        range = match &to {
            Bound::Included(to) => range.le(to),
            Bound::Excluded(to) => range.lt(to),
            Bound::Unbounded => range,
        };
        let mut terms = range.into_stream()?;
        let mut count = 0;
        while terms.advance() {
            self.step()?;
            let text = terms.key().strip_prefix(plan.prefix.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok());
            if !text.is_some_and(|text| plan.matcher.is_match(text)) {
                continue;
            }
            count += 1;
            if count > TERMS_BEFORE_COLUMN
                && plan.matcher.is_range()
                && let Some(column) = &plan.column
            {
                return self.strings(column, &plan.prefix, from, to);
            }
            self.count_term()?;
            let mut postings = inverted.read_block_postings_from_terminfo(terms.value(), IndexRecordOption::Basic)?;
            while !postings.docs().is_empty() {
                found.extend(postings.docs(), max_doc);
                postings.advance();
                self.step()?;
            }
        }
        Ok(found)
    }

    fn count_term(&self) -> Result<(), IndexError> {
        self.matched_terms.set(self.matched_terms.get() + 1);
        let most = self.limits.matched_terms;
        if self.matched_terms.get() <= most {
            return Ok(());
        }
        let text = format!(
            "the patterns of the query match more than {most} terms, which is the most; write them with more \
             characters"
        );
        Err(IndexError::TooCostly(text))
    }

    /// Documents with a string between bounds, by the column, whose numbers have the order of the
    /// strings. The bounds have what begins the terms of the field.
    fn strings(
        &self,
        column: &str,
        prefix: &str,
        from: Bound<Vec<u8>>,
        to: Bound<Vec<u8>>,
    ) -> Result<FoundDocuments, IndexError> {
        let Some(column) = self.string_column(column)? else { return Ok(FoundDocuments::new()) };
        let rest = |bound: &[u8]| bound.get(prefix.len()..).map(<[u8]>::to_vec);
        // The number of the first string that is not less than a text, or greater than it.
        let first = |text: &[u8], is_greater: bool| -> std::io::Result<u64> {
            Ok(match column.dictionary().term_ord_or_next(text)? {
                TermOrdHit::Exact(ord) => ord + u64::from(is_greater),
                TermOrdHit::Next(ord) => ord,
            })
        };
        let low = match &from {
            Bound::Unbounded => 0,
            Bound::Included(from) => rest(from).map_or(Ok(0), |from| first(&from, false))?,
            Bound::Excluded(from) => rest(from).map_or(Ok(0), |from| first(&from, true))?,
        };
        // A bound behind the whole field is shorter than what begins its terms, or differs in it.
        let end_of = |to: &[u8], is_greater: bool| match to.strip_prefix(prefix.as_bytes()) {
            Some(to) => first(to, is_greater),
            None => Ok(u64::MAX),
        };
        let end = match &to {
            Bound::Unbounded => u64::MAX,
            Bound::Included(to) => end_of(to, true)?,
            Bound::Excluded(to) => end_of(to, false)?,
        };
        let mut found = FoundDocuments::new();
        if low < end {
            self.scan(column.ords(), low, end - 1, &mut found)?;
        }
        Ok(found)
    }

    fn numbers(&self, column: &str, low: i64, high: i64) -> Result<FoundDocuments, IndexError> {
        let mut found = FoundDocuments::new();
        if low <= high
            && let Some(column) = self.number_column(column)?
        {
            self.scan(&column, low, high, &mut found)?;
        }
        Ok(found)
    }

    fn scan<T>(&self, column: &Column<T>, low: T, high: T, found: &mut FoundDocuments) -> Result<(), IndexError>
    where
        T: tantivy::columnar::MonotonicallyMappableToU64 + PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
    {
        // The library finds all rows of a column with one value only, whatever the range is.
        if high < column.min_value() || column.max_value() < low {
            return Ok(());
        }
        let max_doc = self.reader.max_doc();
        let mut documents = Vec::new();
        for start in (0..max_doc).step_by(COLUMN_STEP as usize) {
            self.check_time()?;
            documents.clear();
            let end = start.saturating_add(COLUMN_STEP).min(max_doc);
            column.get_docids_for_value_range(low..=high, start..end, &mut documents);
            found.extend(&documents, max_doc);
        }
        Ok(())
    }

    /// The column of strings with a name; `None` if no document of the segment has a value.
    pub(crate) fn string_column(&self, name: &str) -> Result<Option<StrColumn>, IndexError> {
        Ok(self.reader.fast_fields().str(name)?)
    }

    /// The column of numbers, dates or booleans with a name.
    pub(crate) fn number_column(&self, name: &str) -> Result<Option<Column<i64>>, IndexError> {
        let Some(handle) = self.reader.fast_fields().dynamic_column_handle(name, ColumnType::I64)? else {
            return Ok(None);
        };
        Ok(match handle.open()? {
            DynamicColumn::I64(column) => Some(column),
            _ => None,
        })
    }
}
