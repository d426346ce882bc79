//! Answers in JSON.

use super::form::{Form, Found, Whole};
use super::plain::Plain;
use std::fmt::Write;

/// Answers in JSON.
#[derive(Debug, Default)]
pub(super) struct JsonForm {
    /// What is open, and whether it has a part already.
    open: Vec<(Whole, bool)>,
}

impl JsonForm {
    /// Writes what comes before a value: a comma, and its name unless it lies in an array.
    fn before(&mut self, out: &mut String, name: Option<&str>) {
        let Some((whole, has_part)) = self.open.last_mut() else { return };
        if std::mem::replace(has_part, true) {
            out.push(',');
        }
        match whole {
            Whole::Array => {}
            Whole::Flat => {
                quote(name.unwrap_or_default(), out);
                out.push(',');
            }
            Whole::Map | Whole::Document => {
                quote(name.unwrap_or_default(), out);
                out.push(':');
            }
        }
    }
}

impl Form for JsonForm {
    fn begin(&mut self, out: &mut String) {
        self.open(out, None, Whole::Map, false);
    }

    fn end(&mut self, out: &mut String) {
        self.close(out);
        out.push('\n');
    }

    fn open(&mut self, out: &mut String, name: Option<&str>, whole: Whole, _is_empty: bool) {
        self.before(out, name);
        out.push(if matches!(whole, Whole::Map | Whole::Document) { '{' } else { '[' });
        self.open.push((whole, false));
    }

    fn close(&mut self, out: &mut String) {
        let whole = self.open.pop().map(|(whole, _)| whole);
        out.push(if matches!(whole, Some(Whole::Map | Whole::Document)) { '}' } else { ']' });
    }

    fn plain(&mut self, out: &mut String, name: Option<&str>, value: Plain<'_>) {
        self.before(out, name);
        let is_quoted = match value {
            Plain::Text(_) | Plain::Date(_) => true,
            // JSON has no infinite numbers.
            Plain::Float(number) => !number.is_finite(),
            Plain::Double(number) => !number.is_finite(),
            Plain::Int(_) | Plain::Long(_) | Plain::Bool(_) => false,
        };
        let text = value.into_text();
        if is_quoted { quote(&text, out) } else { out.push_str(&text) }
    }

    fn open_documents(&mut self, out: &mut String, found: Found) {
        self.open(out, Some("response"), Whole::Map, false);
        self.plain(out, Some("numFound"), Plain::count(found.count));
        self.plain(out, Some("start"), Plain::count(found.start as u64));
        if let Some(score_max) = found.score_max {
            self.plain(out, Some("maxScore"), Plain::Float(score_max));
        }
        self.open(out, Some("docs"), Whole::Array, false);
    }

    fn close_documents(&mut self, out: &mut String) {
        self.close(out);
        self.close(out);
    }
}

/// Writes a text in quotes, with the escapes of Solr's writer. JavaScript takes the two separators
/// for ends of lines.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a text does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
