//! Fields, values and terms of a query.

use super::fuzzy::Fuzzy;
use super::matcher::Matcher;
use super::plan::{PhrasePlan, Plan, TermsPlan};
use crate::analysis::Token;
use crate::analyzers::Analyzers;
use crate::document::{sortable_of, term_and_column};
use crate::error::IndexError;
use crate::layout::{Layout, column_name, sortable, term_prefix};
use ombak_search::dates::Date;
use ombak_search::extract::Extracted;
use ombak_search::query::{self, Clause, LuceneRegex, Operator, Query, Wildcard, WildcardPiece};
use ombak_search::schema::{Field, Kind, Schema};
use ombak_search::values::{Value, value_of};
use std::collections::BTreeMap;
use std::ops::Bound;
use tantivy::query::Occur;

/// Characters of a stranger's text that an error repeats.
const SHOWN_CHARS_MAX: usize = 64;

/// Resolves queries.
pub(crate) struct Resolver<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) layout: &'a Layout,
    pub(crate) analyzers: &'a Analyzers,
    /// For date math.
    pub(crate) now: Date,
    /// What connects the terms that one word becomes.
    pub(crate) operator: Operator,
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

impl Resolver<'_> {
    /// The plan of a whole query. If it only prohibits, it finds all other documents, as in Solr. A
    /// group inside it that only prohibits finds nothing. Clauses that are left out do not count.
    pub(crate) fn whole(&self, query: &Query) -> Result<Plan, IndexError> {
        Ok(self.part(query)?.map_or(Plan::Nothing, against_all_documents))
    }

    /// The plan of a part of a query; `None` for words that are left out, which find and prohibit
    /// nothing.
    fn part(&self, query: &Query) -> Result<Option<Plan>, IndexError> {
        Ok(match query {
            Query::All => Some(Plan::All),
            Query::Exists { field } => Some(self.exists(field)?),
            Query::Term { field, text } => self.words(field, text, None)?,
            Query::Phrase { field, text, slop } => self.words(field, text, Some(*slop))?,
            Query::Prefix { field, text } => Some(self.pattern(field, |pieces| Ok(Matcher::Prefix(pieces.of(text))))?),
            Query::Wildcard { field, pattern } => {
                Some(self.pattern(field, |pieces| Matcher::of_wildcard(&pieces.of_wildcard(pattern)))?)
            }
            Query::Fuzzy { field, text, edits } => {
                Some(self.pattern(field, |pieces| Ok(Matcher::Fuzzy(Fuzzy::new(&pieces.of(text), *edits))))?)
            }
            Query::Regex { field, regex } => {
                Some(self.pattern(field, |pieces| Matcher::of_regex(&pieces.of_regex(regex)?))?)
            }
            Query::Range { field, from, to } => Some(self.range(field, from, to)?),
            Query::Group(clauses) => self.group(clauses)?,
            Query::Boosted { query, factor } => self.part(query)?.map(|plan| Plan::Boosted(Box::new(plan), *factor)),
        })
    }

    fn group(&self, clauses: &[Clause]) -> Result<Option<Plan>, IndexError> {
        let mut plans = Vec::with_capacity(clauses.len());
        let mut is_first_plain = false;
        for (at, clause) in clauses.iter().enumerate() {
            // Lucene has left out what is left out before AND and OR change the clause before them.
            if let (Some(before), Some((last, _))) = (clause.before, plans.last_mut())
                && *last != Occur::MustNot
            {
                *last = occur_of(before);
            }
            plans.extend(self.part(&clause.query)?.map(|plan| (occur_of(clause.occur), plan)));
            is_first_plain |= at == 0 && !clause.has_sign && !plans.is_empty();
        }
        // It can be a group that only prohibits, which as the whole query finds all others.
        if is_first_plain && plans.len() == 1 {
            return Ok(plans.pop().map(|(_, plan)| plan));
        }
        Ok((!plans.is_empty()).then_some(Plan::Group(plans)))
    }

    /// The field of a name.
    pub(crate) fn field(&self, name: &str) -> Result<&Field, IndexError> {
        self.schema.field(name).ok_or_else(|| IndexError::BadQuery(format!("undefined field {}", shown(name))))
    }

    fn exists(&self, name: &str) -> Result<Plan, IndexError> {
        let field = self.field(name)?;
        Ok(if field.properties.is_indexed { Plan::Exists(self.layout.name_term(name)) } else { Plan::Nothing })
    }

    /// A word, or a phrase if there is a slop.
    fn words(&self, name: &str, text: &str, slop: Option<u32>) -> Result<Option<Plan>, IndexError> {
        let field = self.field(name)?;
        if !field.properties.is_indexed {
            return Ok(Some(Plan::Nothing));
        }
        if let Kind::Text { .. } = field.field_type.kind {
            return Ok(self.text_words(name, field, text, slop));
        }
        let value = self.value(field, name, text)?;
        let term = value.as_ref().and_then(term_and_column).map(|(term, _)| self.layout.exact_term(name, &term));
        Ok(Some(term.map_or(Plan::Nothing, Plan::Term)))
    }

    fn text_words(&self, name: &str, field: &Field, text: &str, slop: Option<u32>) -> Option<Plan> {
        let chain = self.analyzers.query_chain(&field.field_type)?;
        let tokens = chain.terms(text);
        let mut places: BTreeMap<u32, Vec<tantivy::Term>> = BTreeMap::new();
        for Token { text, position, .. } in &tokens {
            let term = self.layout.word_term(name, text);
            let terms = places.entry(*position).or_default();
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
        let is_phrase = slop.is_some() || field.field_type.generates_phrases || chain.splits_words();
        let has_several = places.len() > 1;
        if has_several && is_phrase {
            let places = places.into_iter().collect();
            return Some(Plan::Phrase(PhrasePlan { places, slop: slop.unwrap_or(0) }));
        }
        let terms: Vec<tantivy::Term> = places.into_values().flatten().collect();
        if let [only] = &terms[..] {
            return Some(Plan::Term(only.clone()));
        }
        let occur = if has_several && self.operator == Operator::And { Occur::Must } else { Occur::Should };
        let clauses: Vec<(Occur, Plan)> = terms.into_iter().map(|term| (occur, Plan::Term(term))).collect();
        (!clauses.is_empty()).then_some(Plan::Group(clauses))
    }

    /// The value that a text is in a field.
    fn value(&self, field: &Field, name: &str, text: &str) -> Result<Option<Value>, IndexError> {
        let bad = |bad| {
            let what = if field.field_type.kind == Kind::Date { "Invalid Date String" } else { "Invalid value" };
            IndexError::BadQuery(format!("{what}: '{}' for field {}: {bad}", shown(text), shown(name)))
        };
        value_of(field, &Extracted::Text(text.to_owned()), self.now).map_err(bad)
    }

    /// Terms of a field that a pattern means. Numbers and dates have no terms that a pattern could
    /// mean.
    fn pattern(
        &self,
        name: &str,
        matcher: impl FnOnce(Pieces<'_>) -> Result<Matcher, IndexError>,
    ) -> Result<Plan, IndexError> {
        let field = self.field(name)?;
        let is_words = matches!(field.field_type.kind, Kind::Text { .. });
        let has_terms = is_words || matches!(field.field_type.kind, Kind::String | Kind::Location | Kind::Bool);
        let chain = if is_words { self.analyzers.query_chain(&field.field_type) } else { None };
        let matcher = matcher(Pieces { chain })?;
        if !has_terms || !field.properties.is_indexed {
            return Ok(Plan::Nothing);
        }
        let has_column = matches!(field.field_type.kind, Kind::String | Kind::Location);
        Ok(Plan::Terms(TermsPlan {
            is_words,
            prefix: term_prefix(name),
            matcher,
            column: has_column.then(|| column_name(name)),
        }))
    }

    fn range(&self, name: &str, from: &Bound<String>, to: &Bound<String>) -> Result<Plan, IndexError> {
        let field = self.field(name)?;
        if !field.properties.is_indexed {
            return Ok(Plan::Nothing);
        }
        let has_no_bound = (from, to) == (&Bound::Unbounded, &Bound::Unbounded);
        match field.field_type.kind {
            Kind::Binary | Kind::Random => Ok(Plan::Nothing),
            Kind::Int | Kind::Long | Kind::Date | Kind::Bool | Kind::String | Kind::Location | Kind::Text { .. }
                if has_no_bound =>
            {
                self.exists(name)
            }
            Kind::Int | Kind::Long | Kind::Float | Kind::Double | Kind::Date => self.numbers(name, field, from, to),
            Kind::Bool => {
                let term = |text: &String| crate::document::bool_term(text.starts_with(['1', 't', 'T'])).to_owned();
                let (from, to) = (from.as_ref().map(term), to.as_ref().map(term));
                self.pattern(name, |_| Ok(Matcher::Range(from, to)))
            }
            Kind::String | Kind::Location | Kind::Text { .. } => self.pattern(name, |pieces| {
                Ok(Matcher::Range(from.as_ref().map(|text| pieces.of(text)), to.as_ref().map(|text| pieces.of(text))))
            }),
        }
    }

    fn numbers(&self, name: &str, field: &Field, from: &Bound<String>, to: &Bound<String>) -> Result<Plan, IndexError> {
        let is_floating = matches!(field.field_type.kind, Kind::Float | Kind::Double);
        // What is no number is in no range.
        let (least, most) =
            if is_floating { (sortable(f64::NEG_INFINITY), sortable(f64::INFINITY)) } else { (i64::MIN, i64::MAX) };
        let number = |text: &String| -> Result<Option<i64>, IndexError> {
            Ok(self.value(field, name, text)?.as_ref().and_then(sortable_of))
        };
        let low = match from {
            Bound::Unbounded => Some(least),
            Bound::Included(text) => number(text)?,
            Bound::Excluded(text) => number(text)?.and_then(|number| number.checked_add(1)),
        };
        let high = match to {
            Bound::Unbounded => Some(most),
            Bound::Included(text) => number(text)?,
            Bound::Excluded(text) => number(text)?.and_then(|number| number.checked_sub(1)),
        };
        Ok(match (low, high) {
            (Some(low), Some(high)) if low <= high => Plan::Numbers { column: column_name(name), low, high },
            _ => Plan::Nothing,
        })
    }
}

/// A plan that finds all other documents if it only prohibits.
fn against_all_documents(plan: Plan) -> Plan {
    match plan {
        Plan::Boosted(plan, factor) => Plan::Boosted(Box::new(against_all_documents(*plan)), factor),
        Plan::Group(mut clauses) => {
            if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
                clauses.push((Occur::Must, Plan::All));
            }
            Plan::Group(clauses)
        }
        other => other,
    }
}

fn occur_of(occur: query::Occur) -> Occur {
    match occur {
        query::Occur::Optional => Occur::Should,
        query::Occur::Required => Occur::Must,
        query::Occur::Prohibited => Occur::MustNot,
    }
}

/// What writes pieces of patterns as the terms of the field are written.
#[derive(Clone, Copy)]
struct Pieces<'a> {
    chain: Option<&'a crate::analysis::Chain>,
}

impl Pieces<'_> {
    fn of(self, text: &str) -> String {
        self.chain.map_or_else(|| text.to_owned(), |chain| chain.normalized(text))
    }

    fn of_wildcard(self, pattern: &Wildcard) -> Wildcard {
        Wildcard::of(pattern.pieces().iter().map(|piece| match piece {
            WildcardPiece::Text(text) => WildcardPiece::Text(self.of(text)),
            other => other.clone(),
        }))
    }

    fn of_regex(self, regex: &LuceneRegex) -> Result<LuceneRegex, IndexError> {
        if self.chain.is_none() {
            return Ok(regex.clone());
        }
        LuceneRegex::read(&self.of(regex.source())).map_err(|(_, bad)| {
            IndexError::BadQuery(format!("the regular expression /{}/: {bad}", shown(regex.source())))
        })
    }
}
