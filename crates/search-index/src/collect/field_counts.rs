//! How many documents have each value of a field.

use super::segment_order::number_value;
use crate::error::IndexError;
use crate::layout::{Layout, column_name, term_prefix};
use crate::query::Execution;
use ombak_search::merge::SortKind;
use ombak_search::schema::{Field, Kind};
use ombak_search::values::Value;
use std::collections::{BTreeMap, HashMap};
use tantivy::columnar::{Column, StrColumn};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId};

/// Strings of a segment that are counted in a list and not in a map.
const LISTED_MAX: usize = 1 << 18;

/// Strings that are read from a column together.
const STRINGS_READ: usize = 4_096;

/// How many documents have each value of a field, in all segments so far.
pub(super) struct FieldCounts {
    name: String,
    source: Source,
    strings: BTreeMap<String, u64>,
    numbers: HashMap<i64, u64>,
}

#[derive(Clone, Copy)]
enum Source {
    /// The field has no values that are counted.
    Nothing,
    Strings,
    Numbers(SortKind),
    /// The terms of texts.
    Words,
}

/// The same inside a segment.
pub(super) enum SegmentCounts {
    None,
    Listed { column: StrColumn, counts: Vec<u64> },
    Strings { column: StrColumn, counts: HashMap<u64, u64> },
    Numbers { column: Column<i64>, counts: HashMap<i64, u64> },
}

impl FieldCounts {
    pub(super) fn new(name: &str, field: &Field) -> Self {
        let source = match field.field_type.kind {
            _ if !field.properties.is_indexed => Source::Nothing,
            Kind::String | Kind::Location => Source::Strings,
            Kind::Text { .. } => Source::Words,
            Kind::Bool => Source::Numbers(SortKind::Bool),
            Kind::Int => Source::Numbers(SortKind::Int),
            Kind::Long => Source::Numbers(SortKind::Long),
            Kind::Float => Source::Numbers(SortKind::Float),
            Kind::Double => Source::Numbers(SortKind::Double),
            Kind::Date => Source::Numbers(SortKind::Date),
            Kind::Binary | Kind::Random => Source::Nothing,
        };
        Self { name: name.to_owned(), source, strings: BTreeMap::new(), numbers: HashMap::new() }
    }

    /// Whether the documents found are needed together, after all are found.
    pub(super) fn needs_set(&self) -> bool {
        matches!(self.source, Source::Words)
    }

    pub(super) fn value_count(&self) -> usize {
        self.strings.len() + self.numbers.len()
    }

    pub(super) fn open(&self, on: &Execution<'_>) -> Result<SegmentCounts, IndexError> {
        let column = column_name(&self.name);
        Ok(match self.source {
            Source::Nothing | Source::Words => SegmentCounts::None,
            Source::Strings => match on.string_column(&column)? {
                None => SegmentCounts::None,
                Some(column) if column.num_terms() <= LISTED_MAX => {
                    let counts = vec![0; column.num_terms()];
                    SegmentCounts::Listed { column, counts }
                }
                Some(column) => SegmentCounts::Strings { column, counts: HashMap::new() },
            },
            Source::Numbers(_) => match on.number_column(&column)? {
                None => SegmentCounts::None,
                Some(column) => SegmentCounts::Numbers { column, counts: HashMap::new() },
            },
        })
    }

    /// Adds the counts of a segment.
    pub(super) fn add(&mut self, counts: SegmentCounts, on: &Execution<'_>) -> Result<(), IndexError> {
        match counts {
            SegmentCounts::None => {}
            SegmentCounts::Listed { column, counts } => {
                let counts = (0..).zip(counts).filter(|(_, count)| *count > 0);
                self.add_strings(&column, counts.collect(), on)?;
            }
            SegmentCounts::Strings { column, counts } => self.add_strings(&column, counts.into_iter().collect(), on)?,
            SegmentCounts::Numbers { counts, .. } => {
                for (number, count) in counts {
                    *self.numbers.entry(number).or_default() += count;
                }
            }
        }
        Ok(())
    }

    fn add_strings(
        &mut self,
        column: &StrColumn,
        mut counts: Vec<(u64, u64)>,
        on: &Execution<'_>,
    ) -> Result<(), IndexError> {
        counts.sort_unstable();
        for counts in counts.chunks(STRINGS_READ) {
            on.check_time()?;
            let numbers: Vec<u64> = counts.iter().map(|(number, _)| *number).collect();
            let mut counts = counts.iter();
            // Strings lie one behind the other, so they are read together.
            column.dictionary().sorted_ords_to_term_cb(&numbers, |text| {
                if let Some((_, count)) = counts.next() {
                    *self.strings.entry(String::from_utf8_lossy(text).into_owned()).or_default() += count;
                }
            })?;
            check_value_count(self.value_count(), on.limits.facet_values)?;
        }
        Ok(())
    }

    /// Adds the counts of the terms that the documents found in a segment have.
    pub(super) fn add_words(&mut self, found: &BitSet, layout: &Layout, on: &Execution<'_>) -> Result<(), IndexError> {
        let prefix = term_prefix(&self.name);
        let inverted = on.reader.inverted_index(layout.words)?;
        let mut terms = inverted.terms().range().ge(&prefix).into_stream()?;
        while terms.advance() {
            on.step()?;
            let Some(word) = terms.key().strip_prefix(prefix.as_bytes()) else { break };
            let mut postings = inverted.read_block_postings_from_terminfo(terms.value(), IndexRecordOption::Basic)?;
            let mut count = 0;
            while !postings.docs().is_empty() {
                on.step()?;
                count += postings.docs().iter().filter(|document| found.contains(**document)).count() as u64;
                postings.advance();
            }
            if count > 0 {
                *self.strings.entry(String::from_utf8_lossy(word).into_owned()).or_default() += count;
                check_value_count(self.value_count(), on.limits.facet_values)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<(Value, u64)> {
        let strings = self.strings.into_iter().map(|(text, count)| (Value::String(text), count));
        let kind = if let Source::Numbers(kind) = self.source { kind } else { SortKind::Text };
        let numbers = self.numbers.into_iter();
        let numbers = numbers.filter_map(|(number, count)| Some((number_value(kind, number)?, count)));
        strings.chain(numbers).collect()
    }
}

impl SegmentCounts {
    /// Counts the values of a document, each once.
    pub(super) fn count(&mut self, document: DocId) {
        match self {
            Self::None => {}
            Self::Listed { column, counts } => once_each(column.term_ords(document), |number| {
                if let Some(count) = counts.get_mut(number as usize) {
                    *count += 1;
                }
            }),
            Self::Strings { column, counts } => {
                once_each(column.term_ords(document), |number| *counts.entry(number).or_default() += 1);
            }
            Self::Numbers { column, counts } => {
                once_each(column.values_for_doc(document), |number| *counts.entry(number).or_default() += 1);
            }
        }
    }

    /// How many values are in a map.
    pub(super) fn value_count(&self) -> usize {
        match self {
            Self::None | Self::Listed { .. } => 0,
            Self::Strings { counts, .. } => counts.len(),
            Self::Numbers { counts, .. } => counts.len(),
        }
    }
}

/// Gives each value once.
pub(super) fn once_each<T: Ord + Copy>(mut values: impl Iterator<Item = T>, mut give: impl FnMut(T)) {
    let Some(first) = values.next() else { return };
    let Some(second) = values.next() else { return give(first) };
    let mut all: Vec<T> = [first, second].into_iter().chain(values).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().for_each(give);
}

pub(super) fn check_value_count(count: usize, most: usize) -> Result<(), IndexError> {
    if count <= most {
        return Ok(());
    }
    let text = format!(
        "facet.field: the fields have more than {most} different values together, which is the most; find \
         fewer documents or take other fields"
    );
    Err(IndexError::TooCostly(text))
}
