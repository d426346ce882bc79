//! A search as the message of Protocol Buffers has it.

use super::request_error::{RequestError, RequestProblem};
use super::search_request::SearchRequest;

/// The fields of RpbSearchQueryReq (docs/riak/pb-api.md §12), without the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchMessage<'a> {
    /// `q`
    pub query: &'a [u8],
    /// `rows`
    pub rows: Option<u32>,
    /// `start`
    pub start: Option<u32>,
    /// `sort`
    pub sort: Option<&'a [u8]>,
    /// `filter`: one query.
    pub filter: Option<&'a [u8]>,
    /// `df`
    pub default_field: Option<&'a [u8]>,
    /// `op`
    pub operator: Option<&'a [u8]>,
    /// `fl`
    pub fields: Vec<&'a [u8]>,
    /// `presort`, of which Riak takes no notice.
    pub presort: Option<&'a [u8]>,
}

/// Names of parameters, and of the fields of the message that they come from.
const FIELD_NAMES: &[(&str, &str)] = &[("fq", "filter"), ("q.op", "op")];

impl SearchMessage<'_> {
    /// The parameters that the message stands for. As in Riak, documents have all fields and the
    /// score if it names none, and the score also if it has a sort.
    ///
    /// # Errors
    /// A field is not UTF-8.
    pub fn pairs(&self) -> Result<Vec<(String, String)>, RequestError> {
        let mut pairs = vec![("q".to_owned(), text("q", self.query)?)];
        for (parameter, field, value) in [
            ("sort", "sort", self.sort),
            ("fq", "filter", self.filter),
            ("df", "df", self.default_field),
            ("q.op", "op", self.operator),
        ] {
            // Clients write a field that they do not use as an empty one.
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                pairs.push((parameter.to_owned(), text(field, value)?));
            }
        }
        for (parameter, value) in [("rows", self.rows), ("start", self.start)] {
            pairs.extend(value.map(|value| (parameter.to_owned(), value.to_string())));
        }
        let fields: Result<Vec<String>, RequestError> = self.fields.iter().map(|field| text("fl", field)).collect();
        let mut fields = fields?.join(",");
        if fields.trim_matches([',', ' ']).is_empty() {
            fields = "*,score".to_owned();
        } else if pairs.iter().any(|(name, _)| name == "sort") {
            fields.push_str(",score");
        }
        pairs.push(("fl".to_owned(), fields));
        Ok(pairs)
    }
}

impl SearchRequest {
    /// Reads the message. The caller answers an empty query with `Missing query`.
    ///
    /// # Errors
    /// A field is not UTF-8, or its parameter would be an error.
    pub fn of_message(message: &SearchMessage<'_>) -> Result<Self, RequestError> {
        Self::read(&message.pairs()?).map_err(|mut error| {
            if let Some((_, field)) = FIELD_NAMES.iter().find(|(parameter, _)| *parameter == error.parameter) {
                error.parameter = (*field).to_owned();
            }
            error
        })
    }
}

fn text(field: &str, bytes: &[u8]) -> Result<String, RequestError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| RequestProblem::NotUtf8.of(field))
}
