//! How documents lie in the library's index.

use std::fmt::Write;
use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, JsonObjectOptions, NumericOptions, STORED, Schema,
    TextFieldIndexing, TextOptions,
};
use tantivy::{Term, i64_to_u64, u64_to_i64};

/// The tokenizer of both fields with terms.
pub(crate) const ENCODED: &str = "encoded";

/// The name of the field with columns, which begins the names of columns.
const COLUMNS: &str = "columns";

pub(crate) const PARTITION: &str = "partition";

pub(crate) const EXPIRES: &str = "expires";

/// The fields of the library's index.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) schema: Schema,
    /// The key in the storage.
    pub(crate) key: Field,
    pub(crate) partition: Field,
    pub(crate) generation: Field,
    /// The last Unix second in which the document is found, if there is one.
    pub(crate) expires: Field,
    /// Terms without positions: strings, booleans, numbers and dates, and the names of fields.
    pub(crate) exact: Field,
    /// Terms of texts, with positions.
    pub(crate) words: Field,
    /// Values to sort and count by.
    pub(crate) columns: Field,
    /// What answers tell of the document.
    pub(crate) stored: Field,
}

impl Layout {
    pub(crate) fn new() -> Self {
        let mut builder = Schema::builder();
        let text = |record, has_lengths| {
            let indexing = TextFieldIndexing::default().set_tokenizer(ENCODED).set_index_option(record);
            TextOptions::default().set_indexing_options(indexing.set_fieldnorms(has_lengths))
        };
        let key = builder.add_bytes_field("key", BytesOptions::default().set_indexed());
        let partition = builder.add_u64_field(PARTITION, INDEXED | FAST);
        let generation = builder.add_u64_field("generation", NumericOptions::default().set_fast());
        let expires = builder.add_u64_field(EXPIRES, NumericOptions::default().set_fast());
        let exact = builder.add_text_field("exact", text(IndexRecordOption::Basic, false));
        let words = builder.add_text_field("words", text(IndexRecordOption::WithFreqsAndPositions, true));
        let columns = builder.add_json_field(COLUMNS, JsonObjectOptions::default().set_fast("raw"));
        let stored = builder.add_bytes_field("stored", STORED);
        Self { schema: builder.build(), key, partition, generation, expires, exact, words, columns, stored }
    }

    /// The term of a value in a field without positions.
    pub(crate) fn exact_term(&self, name: &str, value: &str) -> Term {
        Term::from_field_text(self.exact, &format!("{}{value}", term_prefix(name)))
    }

    /// The term of a word of a text.
    pub(crate) fn word_term(&self, name: &str, word: &str) -> Term {
        Term::from_field_text(self.words, &format!("{}{word}", term_prefix(name)))
    }

    /// The term that all documents with a value in a field have.
    pub(crate) fn name_term(&self, name: &str) -> Term {
        Term::from_field_text(self.exact, &existence(name))
    }
}

/// What begins all terms of a field.
pub(crate) fn term_prefix(name: &str) -> String {
    format!("v{}\0", escaped(name))
}

/// The term that says that a document has a value in a field.
pub(crate) fn existence(name: &str) -> String {
    format!("n{}", escaped(name))
}

/// The name of the column of a field inside the field of columns.
pub(crate) fn column_key(name: &str) -> String {
    escaped(name)
}

/// The name of the column of a field, as the library's readers take it.
pub(crate) fn column_name(name: &str) -> String {
    format!("{COLUMNS}.{}", escaped(name))
}

/// A name without the characters that mean something in terms and names of columns.
fn escaped(name: &str) -> String {
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            // Writing to a text does not fail.
            let _ = write!(out, "%{:02x}", c as u32);
        }
    }
    out
}

/// The term of a number: terms have the order of the numbers.
pub(crate) fn number_term(sortable: i64) -> String {
    format!("{:016x}", i64_to_u64(sortable))
}

/// A number as an integer with the same order, where -0.0 comes before 0.0 and what is no number
/// behind all others, as in Java.
pub(crate) fn sortable(number: f64) -> i64 {
    let number = if number.is_nan() { f64::NAN.copysign(1.0) } else { number };
    u64_to_i64(tantivy::f64_to_u64(number))
}

/// The number of an integer that [`sortable`] made.
pub(crate) fn from_sortable(sortable: i64) -> f64 {
    tantivy::u64_to_f64(i64_to_u64(sortable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order() {
        let numbers = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        for pair in numbers.windows(2) {
            assert!(sortable(pair[0]) < sortable(pair[1]), "{pair:?}");
            assert!(number_term(sortable(pair[0])) < number_term(sortable(pair[1])), "{pair:?}");
        }
        assert_eq!(sortable(-f64::NAN), sortable(f64::NAN));
        assert_eq!(from_sortable(sortable(-2.5)), -2.5);
    }

    #[test]
    fn names_cannot_reach_into_other_fields() {
        assert_eq!(term_prefix("a.b\0c%"), "va%2eb%00c%25\0");
    }
}
