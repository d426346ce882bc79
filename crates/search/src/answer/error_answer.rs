//! The answer of a search that could not be carried out.

use super::form::{Form, Whole};
use super::json_form::JsonForm;
use super::plain::Plain;
use super::search_answer::Header;
use super::xml_form::XmlForm;
use crate::request::Format;

/// The answer of a search that could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorAnswer {
    /// What it tells about the request; `None` if the request does not want it.
    pub header: Option<Header>,
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong.
    pub message: String,
}

impl ErrorAnswer {
    /// The text of the answer. Solr adds a `trace` of Java to errors of its own (500); there is
    /// none here.
    pub fn to_text(&self, format: Format) -> String {
        let (mut json, mut xml) = (JsonForm::default(), XmlForm::default());
        let form: &mut dyn Form = match format {
            Format::Json => &mut json,
            Format::Xml => &mut xml,
        };
        let mut out = String::new();
        form.begin(&mut out);
        if let Some(header) = &self.header {
            form.header(&mut out, header, self.status);
        }
        form.open(&mut out, Some("error"), Whole::Map, false);
        form.plain(&mut out, Some("msg"), Plain::text(&self.message));
        form.plain(&mut out, Some("code"), Plain::Int(i64::from(self.status)));
        form.close(&mut out);
        form.end(&mut out);
        out
    }
}
