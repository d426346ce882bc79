//! What the forms of an answer have in common.

use super::document::{Document, FieldValues};
use super::plain::Plain;
use super::search_answer::Header;

/// A value that has parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// Names and values; in JSON an object.
    Map,
    /// Names and values whose order counts; in JSON an array of both by turns.
    Flat,
    /// Values without names.
    Array,
    /// A document.
    Document,
}

/// What is told of a list of documents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) count: u64,
    pub(super) start: usize,
    pub(super) score_max: Option<f32>,
}

/// A form of answers. Parts are written in their order; what is opened is closed.
pub(super) trait Form {
    /// Begins an answer.
    fn begin(&mut self, out: &mut String);
    /// Ends an answer.
    fn end(&mut self, out: &mut String);
    /// Begins a value with parts. Some forms write one without parts in another way.
    fn open(&mut self, out: &mut String, name: Option<&str>, whole: Whole, is_empty: bool);
    /// Ends the last one.
    fn close(&mut self, out: &mut String);
    /// Writes a value without parts.
    fn plain(&mut self, out: &mut String, name: Option<&str>, value: Plain<'_>);
    /// Begins the list of documents.
    fn open_documents(&mut self, out: &mut String, found: Found);
    /// Ends it.
    fn close_documents(&mut self, out: &mut String);

    /// Writes the header.
    ///
    /// `partialResults` comes first: Solr adds it while it searches, and the others afterwards. The
    /// facts about Riak do not show one.
    fn header(&mut self, out: &mut String, header: &Header, status: u16) {
        self.open(out, Some("responseHeader"), Whole::Map, false);
        if header.is_partial {
            self.plain(out, Some("partialResults"), Plain::Bool(true));
        }
        self.plain(out, Some("status"), Plain::Int(i64::from(status)));
        self.plain(out, Some("QTime"), Plain::count(header.time_ms));
        if let Some(echo) = &header.echo {
            self.open(out, Some("params"), Whole::Map, echo.is_empty());
            for (name, values) in echo {
                match values.as_slice() {
                    [value] => self.plain(out, Some(name), Plain::text(value)),
                    values => {
                        self.open(out, Some(name), Whole::Array, values.is_empty());
                        for value in values {
                            self.plain(out, None, Plain::text(value));
                        }
                        self.close(out);
                    }
                }
            }
            self.close(out);
        }
        self.close(out);
    }

    /// Writes a document.
    fn document(&mut self, out: &mut String, document: &Document) {
        self.open(out, None, Whole::Document, false);
        for (name, values) in &document.fields {
            match values {
                FieldValues::One(value) => self.plain(out, Some(name), Plain::of(value)),
                FieldValues::Many(values) => {
                    self.open(out, Some(name), Whole::Array, values.is_empty());
                    for value in values {
                        self.plain(out, None, Plain::of(value));
                    }
                    self.close(out);
                }
            }
        }
        if let Some(score) = document.score {
            self.plain(out, Some("score"), Plain::Float(score));
        }
        self.close(out);
    }
}
