//! JSON: names inside each other are joined with dots, and an array is several values.

use super::error::ExtractError;
use super::pair::{Extracted, Pairs, Path};
use ombak_types::DecodeBudget;
use ombak_types::json::Json;

const SEPARATOR: &str = ".";

pub(super) fn extract(value: &[u8], pairs: &mut Pairs) -> Result<(), ExtractError> {
    let mut budget = DecodeBudget::of_message(value.len());
    let json = Json::read_within(value, &mut budget).map_err(ExtractError::Json)?;
    visit(&json, &mut Path::default(), false, pairs)
}

/// Collects a value and what is in it. The reader bounds how deep values nest.
fn visit(json: &Json, path: &mut Path, has_name: bool, pairs: &mut Pairs) -> Result<(), ExtractError> {
    match json {
        Json::Object(members) => members.iter().try_for_each(|(name, member)| {
            let separator = if has_name { SEPARATOR } else { "" };
            let before = path.enter(separator, name)?;
            visit(member, path, true, pairs)?;
            path.leave(before);
            Ok(())
        }),
        Json::List(items) => items.iter().try_for_each(|item| visit(item, path, has_name, pairs)),
        Json::Null => Ok(()),
        // Riak gives a value outside of all objects the name `undefined`, which no field has.
        _ if !has_name => Ok(()),
        Json::Bool(is_true) => pairs.push(path.as_str(), Extracted::Bool(*is_true)),
        Json::Text(text) => pairs.push_text(path.as_str(), text),
        Json::Int(_) | Json::Big(_) | Json::Float(_) => pairs.push_text(path.as_str(), &json.to_string()),
    }
}
