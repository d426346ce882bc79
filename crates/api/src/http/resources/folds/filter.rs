//! The parameter `filter`: JSON in base64 (docs/riak/http-api.md §11).

use crate::folds::{self, InvalidDefinition};
use crate::http::request::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ombak_kv::folds::FoldRange;
use ombak_tictac::TreeSize;
use ombak_types::etf::{BinaryText, CharListText};
use ombak_types::json::{Json, member};
use std::collections::BTreeSet;

/// Why a request asks for no fold.
pub(super) enum BadFilter {
    /// It has not the right form. Holds the answer.
    Malformed(String),
    /// It has the right form and cannot be.
    Invalid(InvalidDefinition),
}

impl From<InvalidDefinition> for BadFilter {
    fn from(why: InvalidDefinition) -> Self {
        Self::Invalid(why)
    }
}

/// The filter of a fold over the objects of some n_val.
pub(super) enum CachedFilter {
    /// Numbers of branches or segments; `None` if one is no such number.
    Numbers(Option<BTreeSet<u32>>, Vec<u32>),
    /// Segments and dates.
    Object(RangeFilter),
}

impl CachedFilter {
    /// Reads the filter, which must be there.
    pub(super) fn read(request: &Request, fold: &str) -> Result<Self, BadFilter> {
        let Some(text) = request.parameter("filter") else {
            return Err(BadFilter::Malformed(format!("Filter query param required for {fold} aae fold")));
        };
        match decoded(text) {
            Some(Json::List(numbers)) => {
                let numbers: Option<Vec<u32>> = numbers.iter().map(number).collect();
                Ok(Self::Numbers(
                    numbers.as_ref().map(|all| all.iter().copied().collect()),
                    numbers.unwrap_or_default(),
                ))
            }
            Some(Json::Object(_)) if fold == "branch" => {
                Err(BadFilter::Malformed("Invalid filter for branch".to_owned()))
            }
            Some(Json::Object(members)) => RangeFilter::of_members(&members).map(Self::Object).map_err(bad_cached),
            Some(other) => Err(bad_cached(shown(&other))),
            None => Err(bad_cached(shown_raw(text))),
        }
    }

    /// The numbers of branches, in the order in which they were asked for.
    pub(super) fn into_branches(self) -> Result<Vec<u32>, BadFilter> {
        match self {
            Self::Numbers(Some(_), numbers) if numbers.iter().all(|number| *number < TreeSize::Large.branches()) => {
                Ok(numbers)
            }
            Self::Numbers(..) | Self::Object(_) => Err(InvalidDefinition.into()),
        }
    }

    /// Restricts a range. The segments are those of a tree of size large, whatever the filter says.
    pub(super) fn apply(self, range: &mut FoldRange) -> Result<(), BadFilter> {
        match self {
            Self::Numbers(leaves, _) => {
                folds::set_segments(range, TreeSize::Large, leaves.ok_or(InvalidDefinition)?);
            }
            Self::Object(RangeFilter { segments: Some((_, leaves)), dates, .. }) => {
                let filter = RangeFilter { segments: Some((TreeSize::Large, leaves)), dates, ..RangeFilter::default() };
                filter.apply(range)?;
            }
            Self::Object(_) => {
                let text = "The filter of keysclocks needs a segment_filter";
                return Err(BadFilter::Malformed(text.to_owned()));
            }
        }
        Ok(())
    }
}

/// The filter of a fold over a bucket.
#[derive(Default)]
pub(super) struct RangeFilter {
    keys: Option<(Bytes, Bytes)>,
    dates: Option<(u64, u64)>,
    /// The leaves are `None` if one is no number.
    segments: Option<(TreeSize, Option<BTreeSet<u32>>)>,
    /// The number of a hash that differs from that of kept trees.
    pub(super) hash_iv: Option<u64>,
    /// Whether keys are changed. Otherwise they are only counted.
    pub(super) is_change: bool,
}

impl RangeFilter {
    /// Reads the filter. Without one, everything is selected.
    pub(super) fn read(request: &Request) -> Result<Self, BadFilter> {
        let Some(text) = request.parameter("filter") else { return Ok(Self::default()) };
        let bad = |shown: String| BadFilter::Malformed(format!("Invalid range filter {shown}"));
        match decoded(text) {
            Some(Json::Object(members)) => Self::of_members(&members).map_err(bad),
            Some(other) => Err(bad(shown(&other))),
            None => Err(bad(shown_raw(text))),
        }
    }

    /// Reads the members of an object. The error is the text of the first one that is wrong.
    fn of_members(members: &[(String, Json)]) -> Result<Self, String> {
        Ok(Self {
            keys: read_keys(members)?,
            dates: read_dates(members)?,
            segments: read_segments(members)?,
            hash_iv: read_hash(members)?,
            is_change: read_method(members)?,
        })
    }

    /// Restricts a range.
    pub(super) fn apply(self, range: &mut FoldRange) -> Result<(), InvalidDefinition> {
        if let Some((first, last)) = self.keys {
            folds::set_keys(range, first, last)?;
        }
        if let Some((first, last)) = self.dates {
            folds::set_modified(range, first, last)?;
        }
        if let Some((size, leaves)) = self.segments {
            folds::set_segments(range, size, leaves.ok_or(InvalidDefinition)?);
        }
        Ok(())
    }
}

/// What the parameter holds; `None` if it is no JSON in base64.
fn decoded(text: &[u8]) -> Option<Json> {
    if text.is_empty() {
        return None;
    }
    Json::read(&STANDARD.decode(text).ok()?).ok()
}

fn bad_cached(shown: String) -> BadFilter {
    BadFilter::Malformed(format!("Invalid branch | segment filter {shown}"))
}

/// A member that is there and is not `"all"`.
fn wanted<'a>(members: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    member(members, name).filter(|value| value.as_str() != Some("all"))
}

/// What Riak prints of a member that is wrong.
fn wrong(name: &str, value: impl std::fmt::Display) -> String {
    format!("{{<<\"{name}\">>,{value}}}")
}

fn read_keys(members: &[(String, Json)]) -> Result<Option<(Bytes, Bytes)>, String> {
    let Some(value) = wanted(members, "key_range") else { return Ok(None) };
    let Some(range) = value.as_object() else { return Err(wrong("key_range", shown(value))) };
    match (member(range, "start"), member(range, "end")) {
        (Some(Json::Text(first)), Some(Json::Text(last))) => Ok(Some((first.clone().into(), last.clone().into()))),
        (first, last) => Err(wrong("key_range", shown_pair(first, last))),
    }
}

fn read_dates(members: &[(String, Json)]) -> Result<Option<(u64, u64)>, String> {
    let Some(value) = wanted(members, "date_range") else { return Ok(None) };
    let Some(range) = value.as_object() else { return Err(wrong("date_range", shown(value))) };
    let (first, last) = (member(range, "start"), member(range, "end"));
    let second = |value: Option<&Json>| value.and_then(Json::as_i64).and_then(|secs| u64::try_from(secs).ok());
    match (second(first), second(last)) {
        (Some(first), Some(last)) => Ok(Some((first, last))),
        _ => Err(wrong("date_range", shown_pair(first, last))),
    }
}

type Segments = (TreeSize, Option<BTreeSet<u32>>);

fn read_segments(members: &[(String, Json)]) -> Result<Option<Segments>, String> {
    let Some(value) = wanted(members, "segment_filter") else { return Ok(None) };
    let Some(filter) = value.as_object() else { return Err(wrong("segment_filter", shown(value))) };
    let size = match member(filter, "tree_size") {
        None => return Err("undefined".to_owned()),
        Some(Json::Text(name)) => TreeSize::of_name(name).ok_or_else(|| shown_raw(name.as_bytes()))?,
        Some(other) => return Err(shown(other)),
    };
    match member(filter, "segments") {
        Some(Json::List(leaves)) => Ok(Some((size, leaves.iter().map(number).collect()))),
        other => Err(other.map_or_else(|| "undefined".to_owned(), shown)),
    }
}

fn read_hash(members: &[(String, Json)]) -> Result<Option<u64>, String> {
    let Some(value) = member(members, "hash_iv") else { return Ok(None) };
    let number = value.as_i64().and_then(|number| u64::try_from(number).ok());
    number.map(Some).ok_or_else(|| wrong("hash_iv", shown(value)))
}

/// Whether keys are changed, and not only counted.
fn read_method(members: &[(String, Json)]) -> Result<bool, String> {
    match member(members, "change_method") {
        None => Ok(false),
        Some(Json::Text(method)) if method == "count" => Ok(false),
        Some(Json::Text(method)) if method == "local" => Ok(true),
        Some(Json::Object(job)) => match member(job, "job_id") {
            Some(id) if id.as_i64().is_some_and(|id| id > 0) => Ok(true),
            id => Err(wrong("change_method", shown_or_undefined(id))),
        },
        Some(other) => Err(wrong("change_method", shown(other))),
    }
}

fn number(value: &Json) -> Option<u32> {
    value.as_i64().and_then(|number| u32::try_from(number).ok())
}

/// A text as Erlang prints the list of its characters.
pub(super) fn shown_raw(text: &[u8]) -> String {
    if text.is_empty() { "[]".to_owned() } else { CharListText(text).to_string() }
}

/// A value as Erlang prints it.
fn shown(value: &Json) -> String {
    match value {
        Json::Text(text) => BinaryText(text.as_bytes()).to_string(),
        Json::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| wrong(name, shown(value)));
            format!("{{struct,[{}]}}", members.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fn shown_or_undefined(value: Option<&Json>) -> String {
    value.map_or_else(|| "undefined".to_owned(), shown)
}

fn shown_pair(first: Option<&Json>, last: Option<&Json>) -> String {
    format!("{{{},{}}}", shown_or_undefined(first), shown_or_undefined(last))
}
