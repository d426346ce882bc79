//! Which counts an answer has beside its documents.

use super::limits::{FACET_LIMIT_MAX, FACETS_MAX};
use super::parameters::{Bounds, Parameters, flag_of};
use super::request_error::{RequestError, RequestProblem, shown};

/// Which counts an answer has beside its documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FacetRequest {
    /// Queries, in the syntax of `q`: how many of the documents found are in each.
    pub queries: Vec<String>,
    /// Fields: how many of the documents found have each of their values.
    pub fields: Vec<FieldFacet>,
    /// Fields: how many of the documents found have a value in each of several ranges.
    pub ranges: Vec<RangeFacet>,
}

/// The values of a field, and how many documents have each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFacet {
    /// The field.
    pub field: String,
    /// How many values are told; `None` for all.
    pub limit: Option<usize>,
    /// Values of fewer documents are left out.
    pub count_min: u64,
    /// Which values come first.
    pub order: FacetOrder,
}

/// The order of the values of a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FacetOrder {
    /// The value of the most documents first, and of equals the smaller one.
    Count,
    /// The smallest value first.
    Value,
}

/// Ranges of a field, and how many documents have a value in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeFacet {
    /// The field.
    pub field: String,
    /// Where the first range begins.
    pub start: String,
    /// Where the last range ends.
    pub end: String,
    /// How long a range is: a number, or steps of date math.
    pub gap: String,
    /// Whether the last range ends at the end even if it is shorter then.
    pub has_hard_end: bool,
    /// Ranges with fewer documents are left out.
    pub count_min: u64,
}

/// Values of a facet, if the request does not say how many.
const LIMIT_DEFAULT: i64 = 100;

impl FacetRequest {
    /// Reads the facet parameters, if facets are switched on.
    pub(super) fn read(parameters: Parameters<'_>) -> Result<Option<Self>, RequestError> {
        if !parameters.flag("facet")? {
            return Ok(None);
        }
        let mut facets = Self::default();
        let queries = parameters.at_most("facet.query", FACETS_MAX)?;
        facets.queries = distinct(queries).map(str::to_owned).collect();
        for field in distinct(parameters.at_most("facet.field", FACETS_MAX)?) {
            facets.fields.push(FieldFacet::read(parameters, field)?);
        }
        for field in distinct(parameters.at_most("facet.range", FACETS_MAX)?) {
            facets.ranges.push(RangeFacet::read(parameters, field)?);
        }
        let count = facets.queries.len() + facets.fields.len() + facets.ranges.len();
        if count > FACETS_MAX {
            return Err(RequestProblem::TooMany { most: FACETS_MAX }.of("facet.field, facet.query and facet.range"));
        }
        Ok(Some(facets))
    }
}

impl FieldFacet {
    fn read(parameters: Parameters<'_>, field: &str) -> Result<Self, RequestError> {
        check_name("facet.field", field)?;
        let of_field = OfField { parameters, field };
        let bounds =
            Bounds { least: i64::from(i32::MIN), most: FACET_LIMIT_MAX as i64, hint: "; -1 is for all values" };
        let limit = of_field.number("facet.limit", bounds)?.unwrap_or(LIMIT_DEFAULT);
        // With a limit of 0 Solr sorts by value, which shows nothing then.
        let default = if limit > 0 { FacetOrder::Count } else { FacetOrder::Value };
        Ok(Self {
            field: field.to_owned(),
            limit: usize::try_from(limit).ok(),
            count_min: of_field.count_min()?,
            order: of_field.order()?.unwrap_or(default),
        })
    }
}

impl RangeFacet {
    fn read(parameters: Parameters<'_>, field: &str) -> Result<Self, RequestError> {
        check_name("facet.range", field)?;
        let of_field = OfField { parameters, field };
        let needed = |name: &'static str| {
            let missing = || RequestProblem::Missing { with: "facet.range" }.of(name);
            of_field.one(name)?.map(|(_, value)| value.to_owned()).ok_or_else(missing)
        };
        Ok(Self {
            field: field.to_owned(),
            start: needed("facet.range.start")?,
            end: needed("facet.range.end")?,
            gap: needed("facet.range.gap")?,
            has_hard_end: of_field.flag("facet.range.hardend")?,
            count_min: of_field.count_min()?,
        })
    }
}

/// Values without those that were there before: a facet has its place in an answer by its name.
fn distinct(values: Vec<&str>) -> impl Iterator<Item = &str> {
    let mut seen = std::collections::BTreeSet::new();
    values.into_iter().filter(move |value| seen.insert(*value))
}

fn check_name(parameter: &str, field: &str) -> Result<(), RequestError> {
    if field.starts_with("{!") {
        return Err(RequestProblem::LocalParameters.of(parameter));
    }
    if field.is_empty() || field.contains([' ', ',']) {
        return Err(RequestProblem::NoFieldName(shown(field)).of(parameter));
    }
    Ok(())
}

/// Parameters as they are for one field: `f.FIELD.NAME`, or else `NAME`.
#[derive(Clone, Copy)]
struct OfField<'a> {
    parameters: Parameters<'a>,
    field: &'a str,
}

impl<'a> OfField<'a> {
    /// The name that counts for the field.
    fn name(self, name: &str) -> String {
        let own = format!("f.{}.{name}", self.field);
        if self.parameters.all(&own).next().is_some() { own } else { name.to_owned() }
    }

    fn one(self, name: &str) -> Result<Option<(String, &'a str)>, RequestError> {
        let name = self.name(name);
        let value = self.parameters.one(&name)?;
        Ok(value.map(|value| (name, value)))
    }

    fn number(self, name: &str, bounds: Bounds) -> Result<Option<i64>, RequestError> {
        self.parameters.number(&self.name(name), bounds)
    }

    fn flag(self, name: &str) -> Result<bool, RequestError> {
        self.parameters.flag(&self.name(name))
    }

    /// Solr takes numbers below 0 too, which leave out nothing either.
    fn count_min(self) -> Result<u64, RequestError> {
        let bounds = Bounds { least: i64::from(i32::MIN), most: i64::from(i32::MAX), hint: "" };
        let count = self.number("facet.mincount", bounds)?.unwrap_or(0);
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The order by its name, or by a boolean, as in Solr 1.3.
    fn order(self) -> Result<Option<FacetOrder>, RequestError> {
        let Some((name, text)) = self.one("facet.sort")? else { return Ok(None) };
        match (text, flag_of(text)) {
            ("count", _) | (_, Some(true)) => Ok(Some(FacetOrder::Count)),
            ("index" | "lex", _) | (_, Some(false)) => Ok(Some(FacetOrder::Value)),
            _ => Err(RequestProblem::NotThisValue { given: shown(text), wanted: "count or index" }.of(&name)),
        }
    }
}
