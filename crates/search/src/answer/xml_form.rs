//! Answers in XML.

use super::form::{Form, Found, Whole};
use super::plain::Plain;
use std::fmt::Write;

/// Answers in XML.
#[derive(Debug, Default)]
pub(super) struct XmlForm {
    /// The elements that are open; `None` for one that was written as empty.
    open: Vec<Option<&'static str>>,
}

impl Form for XmlForm {
    fn begin(&mut self, out: &mut String) {
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<response>\n");
    }

    fn end(&mut self, out: &mut String) {
        out.push_str("\n</response>\n");
    }

    fn open(&mut self, out: &mut String, name: Option<&str>, whole: Whole, is_empty: bool) {
        let (element, is_empty) = match whole {
            Whole::Map | Whole::Flat => ("lst", is_empty),
            Whole::Array => ("arr", is_empty),
            // Solr does not look whether it is.
            Whole::Document => ("doc", false),
        };
        tag(out, element, name, is_empty);
        self.open.push((!is_empty).then_some(element));
    }

    fn close(&mut self, out: &mut String) {
        if let Some(Some(element)) = self.open.pop() {
            let _ = write!(out, "</{element}>");
        }
    }

    fn plain(&mut self, out: &mut String, name: Option<&str>, value: Plain<'_>) {
        let element = match value {
            Plain::Text(_) => "str",
            Plain::Int(_) => "int",
            Plain::Long(_) => "long",
            Plain::Float(_) => "float",
            Plain::Double(_) => "double",
            Plain::Bool(_) => "bool",
            Plain::Date(_) => "date",
        };
        let text = value.into_text();
        tag(out, element, name, text.is_empty());
        if !text.is_empty() {
            escape(&text, Place::Text, out);
            let _ = write!(out, "</{element}>");
        }
    }

    fn open_documents(&mut self, out: &mut String, found: Found) {
        let _ = write!(out, "<result name=\"response\" numFound=\"{}\" start=\"{}\"", found.count, found.start);
        if let Some(score_max) = found.score_max {
            let _ = write!(out, " maxScore=\"{}\"", Plain::Float(score_max).into_text());
        }
        out.push('>');
    }

    fn close_documents(&mut self, out: &mut String) {
        out.push_str("</result>");
    }
}

/// Writes the beginning of an element, or all of one without content. Writing to a text does not
/// fail.
fn tag(out: &mut String, element: &str, name: Option<&str>, is_empty: bool) {
    let _ = write!(out, "<{element}");
    if let Some(name) = name {
        out.push_str(" name=\"");
        escape(name, Place::Attribute, out);
        out.push('"');
    }
    out.push_str(if is_empty { "/>" } else { ">" });
}

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    Attribute,
}

/// Writes a text with the escapes of Solr's writer. A character that XML does not have, not even as
/// an escape, is written as `#`, its number and `;`. Solr does so below 32; the two at the end it
/// leaves as they are, which makes an answer that is no XML.
fn escape(text: &str, place: Place, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' if place == Place::Text => out.push_str("&gt;"),
            '"' if place == Place::Attribute => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(c),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
}
