//! A search.

use super::facet_request::FacetRequest;
use super::field_list::FieldList;
use super::limits::{FILTERS_MAX, ROWS_MAX, START_MAX};
use super::other_parameters;
use super::parameters::{Bounds, Parameters};
use super::request_error::{RequestError, RequestProblem, shown};
use super::sort_key::{SortBy, SortKey};
use crate::query::Operator;
use crate::schema::UNIQUE_KEY;

/// A search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest {
    /// The query (`q`). Without one, nothing is found, as in Solr.
    pub query: Option<String>,
    /// Queries that documents must be in too (`fq`); they add nothing to the score.
    pub filters: Vec<String>,
    /// The field of words without one (`df`); without it the schema's counts.
    pub default_field: Option<String>,
    /// What connects clauses that nothing connects (`q.op`); without it the schema's counts.
    pub operator: Option<Operator>,
    /// What documents are sorted by; empty for the best score first.
    pub sort: Vec<SortKey>,
    /// How many documents are passed over (`start`).
    pub start: usize,
    /// How many documents are told (`rows`).
    pub rows: usize,
    /// Which fields of them are told (`fl`).
    pub fields: FieldList,
    /// Counts beside the documents, if they are switched on (`facet`).
    pub facets: Option<FacetRequest>,
    /// Behind which document the answer begins (`cursorMark`): `*`, or what an answer gave.
    pub cursor_mark: Option<String>,
    /// The form of the answer (`wt`).
    pub format: Format,
    /// The parameters that the answer repeats; `None` for no list.
    pub echo: Option<Echo>,
    /// Whether the answer has no header (`omitHeader`), unless it has to say that it is partial.
    pub omits_header: bool,
    /// After how long the answer is what was found until then (`timeAllowed`).
    pub time_allowed_ms: Option<u32>,
}

/// Parameters that an answer repeats, each with its values.
pub type Echo = Vec<(String, Vec<String>)>;

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// XML, which is Solr 4's default.
    #[default]
    Xml,
}

impl Format {
    /// The type of the answer's body in HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=UTF-8",
            Self::Xml => "application/xml; charset=UTF-8",
        }
    }
}

/// Documents of an answer, if the request does not say how many. Riak's configuration has it too.
const ROWS_DEFAULT: usize = 10;

impl SearchRequest {
    /// Reads parameters, in the order of the request.
    ///
    /// # Errors
    /// A parameter is not supported, is wrong, or asks for too much ([`super::limits`]).
    pub fn read(pairs: &[(String, String)]) -> Result<Self, RequestError> {
        let parameters = Parameters::new(pairs)?;
        let facets = FacetRequest::read(parameters)?;
        for (name, value) in parameters.iter() {
            other_parameters::check(name, value, facets.is_some())?;
        }
        let text = |name| parameters.one_not_empty(name).map(|value| value.map(str::to_owned));
        let request = Self {
            query: text("q")?,
            filters: parameters
                .at_most("fq", FILTERS_MAX)?
                .into_iter()
                .filter(|q| !q.is_empty())
                .map(str::to_owned)
                .collect(),
            default_field: text("df")?,
            operator: read_operator(parameters)?,
            sort: SortKey::read_list(parameters.one("sort")?.unwrap_or_default())?,
            start: read_count(parameters, "start", 0, START_MAX, "; cursorMark reads on from there")?,
            rows: read_count(parameters, "rows", ROWS_DEFAULT, ROWS_MAX, "; cursorMark reads more, page by page")?,
            fields: FieldList::read(parameters.all("fl"))?,
            facets,
            cursor_mark: text("cursorMark")?,
            format: read_format(parameters)?,
            echo: read_echo(parameters)?,
            omits_header: parameters.flag("omitHeader")?,
            time_allowed_ms: read_time_allowed(parameters)?,
        };
        request.check_cursor()?;
        Ok(request)
    }

    /// A cursor needs an order without equal documents, and begins at its document.
    fn check_cursor(&self) -> Result<(), RequestError> {
        if self.cursor_mark.is_none() {
            return Ok(());
        }
        let problem = if self.start != 0 {
            RequestProblem::CursorWithStart
        } else if !self.sort.iter().any(|key| key.by == SortBy::Field(UNIQUE_KEY.to_owned())) {
            RequestProblem::CursorWithoutKey
        } else if self.time_allowed_ms.is_some() {
            RequestProblem::CursorWithTime
        } else {
            return Ok(());
        };
        Err(problem.of("cursorMark"))
    }

    /// Whether an answer needs scores: it tells them, or sorts by them. Only then it tells the best
    /// one (`maxScore`).
    pub fn needs_scores(&self) -> bool {
        self.fields.has_score || self.sort.is_empty() || self.sort.iter().any(|key| key.by == SortBy::Score)
    }

    /// How many documents of each part of an index can be in the answer.
    pub fn window(&self) -> usize {
        self.start.saturating_add(self.rows)
    }
}

fn read_count(
    parameters: Parameters<'_>,
    name: &str,
    default: usize,
    most: usize,
    hint: &'static str,
) -> Result<usize, RequestError> {
    let number = parameters.number(name, Bounds { least: 0, most: most as i64, hint })?;
    Ok(number.map_or(default, |number| number as usize))
}

/// Solr takes all texts but `AND` for OR. Here another text is an error.
fn read_operator(parameters: Parameters<'_>) -> Result<Option<Operator>, RequestError> {
    let Some(text) = parameters.one_not_empty("q.op")? else { return Ok(None) };
    let problem = || RequestProblem::NotThisValue { given: shown(text), wanted: "AND or OR" }.of("q.op");
    Operator::of(text).map(Some).ok_or_else(problem)
}

/// Solr writes XML for all names that it does not know. Here they are errors.
fn read_format(parameters: Parameters<'_>) -> Result<Format, RequestError> {
    match parameters.one_not_empty("wt")? {
        None | Some("xml" | "standard") => Ok(Format::Xml),
        Some("json") => Ok(Format::Json),
        Some(other) => Err(RequestProblem::NotThisValue { given: shown(other), wanted: "json or xml" }.of("wt")),
    }
}

/// Riak's configuration has `explicit`: what the request has. `all` adds what the configuration
/// has.
fn read_echo(parameters: Parameters<'_>) -> Result<Option<Echo>, RequestError> {
    let style = parameters.one_not_empty("echoParams")?.unwrap_or("explicit");
    let configured: &[(&str, &str)] = match style.to_ascii_lowercase().as_str() {
        "none" => return Ok(None),
        "explicit" => &[],
        "all" => &[("echoParams", "explicit"), ("rows", "10")],
        _ => {
            let problem = RequestProblem::NotThisValue { given: shown(style), wanted: "none, explicit or all" };
            return Err(problem.of("echoParams"));
        }
    };
    let mut echo = Echo::new();
    let mut places = std::collections::BTreeMap::new();
    for (name, value) in parameters.iter() {
        let place = *places.entry(name).or_insert(echo.len());
        if place == echo.len() {
            echo.push((name.to_owned(), Vec::new()));
        }
        echo[place].1.push(value.to_owned());
    }
    for (name, value) in configured {
        if !places.contains_key(name) {
            echo.push(((*name).to_owned(), vec![(*value).to_owned()]));
        }
    }
    Ok(Some(echo))
}

/// Numbers below 1 are no limit, as in Solr.
fn read_time_allowed(parameters: Parameters<'_>) -> Result<Option<u32>, RequestError> {
    let bounds = Bounds { least: i64::from(i32::MIN), most: i64::from(i32::MAX), hint: "" };
    let number = parameters.number("timeAllowed", bounds)?;
    Ok(number.and_then(|ms| u32::try_from(ms).ok()).filter(|ms| *ms > 0))
}
