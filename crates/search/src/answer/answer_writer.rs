//! Writes an answer piece by piece.

use super::form::{Form, Found, Whole};
use super::json_form::JsonForm;
use super::plain::{Plain, text_of};
use super::search_answer::{FacetCounts, RangeCounts, SearchAnswer};
use super::xml_form::XmlForm;
use crate::request::{Format, Gap};

/// Counts of a facet that are one piece.
const PIECE_COUNTS: usize = 256;

/// Writes an answer piece by piece.
pub struct AnswerWriter<'a> {
    answer: &'a SearchAnswer,
    form: Box<dyn Form + Send>,
    next: Piece,
}

/// The piece that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Beginning,
    Document(usize),
    FacetQueries,
    /// The counts of a field from a place on.
    FacetField(usize, usize),
    FacetRange(usize),
    Ending,
    Nothing,
}

impl<'a> AnswerWriter<'a> {
    /// A writer that has not begun.
    pub fn new(answer: &'a SearchAnswer, format: Format) -> Self {
        let form: Box<dyn Form + Send> = match format {
            Format::Json => Box::new(JsonForm::default()),
            Format::Xml => Box::new(XmlForm::default()),
        };
        Self { answer, form, next: Piece::Beginning }
    }

    /// Adds pieces to a text until it has so many bytes, or the answer ends. Whether more is to
    /// come.
    pub fn write(&mut self, out: &mut String, bytes_min: usize) -> bool {
        while self.next != Piece::Nothing && out.len() < bytes_min {
            self.next = self.piece(out);
        }
        self.next != Piece::Nothing
    }

    /// The whole answer.
    pub fn to_text(answer: &SearchAnswer, format: Format) -> String {
        let mut text = String::new();
        AnswerWriter::new(answer, format).write(&mut text, usize::MAX);
        text
    }

    /// Writes the next piece. The one behind it.
    fn piece(&mut self, out: &mut String) -> Piece {
        let answer = self.answer;
        match (self.next, &answer.facets) {
            (Piece::Beginning, _) => self.beginning(out),
            (Piece::Document(at), _) => match answer.documents.get(at) {
                Some(document) => {
                    self.form.document(out, document);
                    Piece::Document(at + 1)
                }
                None => self.behind_documents(out),
            },
            (Piece::FacetQueries, Some(facets)) => self.facet_queries(out, facets),
            (Piece::FacetField(at, from), Some(facets)) => self.facet_field(out, facets, at, from),
            (Piece::FacetRange(at), Some(facets)) => self.facet_range(out, facets, at),
            (Piece::Nothing, _) => Piece::Nothing,
            (Piece::Ending, _) | (_, None) => {
                self.form.end(out);
                Piece::Nothing
            }
        }
    }

    fn beginning(&mut self, out: &mut String) -> Piece {
        let answer = self.answer;
        self.form.begin(out);
        if let Some(header) = &answer.header {
            self.form.header(out, header, 0);
        }
        let found = Found { count: answer.found_count, start: answer.start, score_max: answer.score_max };
        self.form.open_documents(out, found);
        Piece::Document(0)
    }

    /// The part of Solr that finds documents adds the mark, and the one for facets comes behind it.
    fn behind_documents(&mut self, out: &mut String) -> Piece {
        self.form.close_documents(out);
        if let Some(mark) = &self.answer.next_cursor_mark {
            self.form.plain(out, Some("nextCursorMark"), Plain::text(mark));
        }
        if self.answer.facets.is_some() { Piece::FacetQueries } else { Piece::Ending }
    }

    fn facet_queries(&mut self, out: &mut String, facets: &FacetCounts) -> Piece {
        self.form.open(out, Some("facet_counts"), Whole::Map, false);
        self.form.open(out, Some("facet_queries"), Whole::Map, facets.queries.is_empty());
        for (query, count) in &facets.queries {
            self.form.plain(out, Some(query), Plain::count(*count));
        }
        self.form.close(out);
        self.form.open(out, Some("facet_fields"), Whole::Map, facets.fields.is_empty());
        Piece::FacetField(0, 0)
    }

    fn facet_field(&mut self, out: &mut String, facets: &FacetCounts, at: usize, from: usize) -> Piece {
        let Some(field) = facets.fields.get(at) else {
            self.form.close(out);
            // Another kind of facet, which Ombak does not have. Clients may look for it.
            self.form.open(out, Some("facet_dates"), Whole::Map, true);
            self.form.close(out);
            self.form.open(out, Some("facet_ranges"), Whole::Map, facets.ranges.is_empty());
            return Piece::FacetRange(0);
        };
        if from == 0 {
            self.form.open(out, Some(&field.field), Whole::Flat, field.counts.is_empty());
        }
        let behind = field.counts.len().min(from + PIECE_COUNTS);
        for (value, count) in &field.counts[from..behind] {
            self.form.plain(out, Some(&text_of(value)), Plain::count(*count));
        }
        if behind < field.counts.len() {
            return Piece::FacetField(at, behind);
        }
        self.form.close(out);
        Piece::FacetField(at + 1, 0)
    }

    fn facet_range(&mut self, out: &mut String, facets: &FacetCounts, at: usize) -> Piece {
        if let Some(range) = facets.ranges.get(at) {
            self.range(out, range);
            return Piece::FacetRange(at + 1);
        }
        self.form.close(out);
        // Solr 4.10 has this one too; 4.7, which Riak 2.0 has, does not.
        self.form.open(out, Some("facet_intervals"), Whole::Map, true);
        self.form.close(out);
        self.form.close(out);
        Piece::Ending
    }

    fn range(&mut self, out: &mut String, range: &RangeCounts) {
        let form = &mut self.form;
        form.open(out, Some(&range.field), Whole::Map, false);
        form.open(out, Some("counts"), Whole::Flat, range.counts.is_empty());
        for (value, count) in &range.counts {
            form.plain(out, Some(&text_of(value)), Plain::count(*count));
        }
        form.close(out);
        let gap = match &range.gap {
            Gap::Number(number) => Plain::of(number),
            Gap::Steps(steps) => Plain::text(steps),
        };
        form.plain(out, Some("gap"), gap);
        form.plain(out, Some("start"), Plain::of(&range.start));
        form.plain(out, Some("end"), Plain::of(&range.end));
        form.close(out);
    }
}
