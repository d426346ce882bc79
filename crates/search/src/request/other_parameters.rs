//! Parameters of Solr that are not read: those that change nothing that counts, and those that
//! Ombak does not have.

use super::parameters::flag_of;
use super::request_error::{RequestError, RequestProblem, shown};

/// The parameters that [`super::SearchRequest`] reads.
const READ: &[&str] = &[
    "q",
    "fq",
    "fl",
    "df",
    "q.op",
    "sort",
    "start",
    "rows",
    "wt",
    "facet",
    "cursorMark",
    "echoParams",
    "omitHeader",
    "timeAllowed",
];

/// Parameters that change nothing that a client could miss, and why.
const HARMLESS: &[&str] = &[
    // Spaces and lines between the parts of an answer, which no parser of JSON or XML counts.
    "indent",
    // Browsers add it so that no cache answers.
    "_",
    // The version of Solr's XML. There has been one form since 2.2.
    "version",
    // Riak's Protocol Buffers messages have it; Riak Search 2 takes no notice.
    "presort",
    // Riak's PHP client sends it in place of q.op; Solr does not know it and takes no notice.
    "op",
    // How a query is written in a log.
    "logParamsList",
];

/// Facet parameters that say how values are counted, not which counts come out.
const HARMLESS_FACETS: &[&str] =
    &["method", "threads", "enum.cache.minDf", "overrequest.ratio", "overrequest.count", "shard.limit"];

/// The facet parameters that are read, without `facet.`.
const READ_FACETS: &[&str] =
    &["field", "query", "range", "range.start", "range.end", "range.gap", "range.hardend", "mincount", "limit", "sort"];

/// Parameters that are taken with the value that is Solr's default only.
const DEFAULT_ONLY: &[(&str, &str)] = &[
    // Another syntax of the query.
    ("defType", "lucene"),
    // Another handler of the request.
    ("qt", "/select"),
    // Another shape of the counts of facets.
    ("json.nl", "flat"),
    ("debug", "false"),
    // UTF-8 is what a request has.
    ("ie", "UTF-8"),
    ("TZ", "UTC"),
];

/// Facet parameters that are taken with the value that is Solr's default only.
const DEFAULT_ONLY_FACETS: &[(&str, &str)] = &[
    ("offset", "0"),
    ("prefix", ""),
    ("missing", "false"),
    ("zeros", "true"),
    ("range.other", "none"),
    ("range.include", "lower"),
];

/// Parts of Solr that a parameter switches on, and that are not here. While it does not, Solr
/// takes no notice of the parameters that begin with its name.
const SWITCHES: &[&str] = &[
    "hl",
    "stats",
    "group",
    "mlt",
    "spellcheck",
    "terms",
    "tv",
    "expand",
    "clustering",
    "debugQuery",
    "enableElevation",
    "shards.info",
];

/// Checks a parameter that is perhaps not read. While facets are off, those that say how they are
/// found have no effect.
pub(super) fn check(name: &str, value: &str, has_facets: bool) -> Result<(), RequestError> {
    if READ.contains(&name) || HARMLESS.contains(&name) {
        return Ok(());
    }
    if let Some(facet) = facet_name(name) {
        if !has_facets || READ_FACETS.contains(&facet) || HARMLESS_FACETS.contains(&facet) {
            return Ok(());
        }
        return default_only(DEFAULT_ONLY_FACETS, facet, value).map_err(|problem| problem.of(name));
    }
    for switch in SWITCHES {
        match name.strip_prefix(switch) {
            Some("") => {
                return match flag_of(value) {
                    Some(false) => Ok(()),
                    _ => Err(RequestProblem::NotSupported.of(name)),
                };
            }
            Some(rest) if rest.starts_with('.') => return Ok(()),
            _ => {}
        }
    }
    default_only(DEFAULT_ONLY, name, value).map_err(|problem| problem.of(name))
}

/// What stands behind `facet.`, also in the parameter of one field, such as `f.age_i.facet.limit`.
fn facet_name(name: &str) -> Option<&str> {
    name.strip_prefix("facet.")
        .or_else(|| name.strip_prefix("f.").and_then(|rest| rest.rsplit_once(".facet.")).map(|(_, facet)| facet))
}

fn default_only(table: &[(&str, &'static str)], name: &str, value: &str) -> Result<(), RequestProblem> {
    match table.iter().find(|(known, _)| *known == name) {
        Some((_, default)) if value.eq_ignore_ascii_case(default) => Ok(()),
        Some((_, "")) => Err(RequestProblem::NotSupported),
        Some((_, default)) => Err(RequestProblem::NotThisValue { given: shown(value), wanted: default }),
        None => Err(RequestProblem::NotSupported),
    }
}
