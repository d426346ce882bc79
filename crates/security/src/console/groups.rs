//! Groups: add, alter and delete.

use super::arguments::Arguments;
use super::options::GivenOptions;
use super::present::{Present, existing_name, new_name};
use super::users::has_record;
use super::{Answer, ConsoleError, Edit};
use crate::record::{GroupRecord, Membership, Record, RecordKey, UserRecord};
use crate::shown::shown;
use serde_json::json;

/// Adds a group.
pub(super) fn add(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let ([name], options) = arguments.beginning()?;
    let options = GivenOptions::read(options)?.without_password("group")?;
    let name = new_name(name)?;
    if present.records().groups.contains_key(&name) {
        return Err(ConsoleError::name_in_use());
    }
    let mut record = GroupRecord::new(present.new_id()?);
    record.groups = options.memberships(present)?.unwrap_or_default();
    record.options = options.others;
    present.add(RecordKey::Group(&name), &record)?;
    Ok(Answer::new("", json!({ "added": { "group": name } })))
}

/// Changes the options that are given, and keeps the others.
pub(super) fn alter(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let ([name], options) = arguments.beginning()?;
    let options = GivenOptions::read(options)?.without_password("group")?;
    let name = existing_name(name)?;
    let missing = || ConsoleError::unknown_group(&name);
    if !has_record(present, RecordKey::Group(&name)) {
        return Err(missing());
    }
    let groups = options.memberships(present)?;
    present.change(RecordKey::Group(&name), &missing, &|record: &mut GroupRecord| {
        if let Some(groups) = &groups {
            record.groups.clone_from(groups);
        }
        record.options.extend(options.others.clone());
    })?;
    Ok(Answer::new("", json!({ "altered": { "group": name } })))
}

/// Deletes a group: first the memberships in it, and then the group.
///
/// A removal that ends half way leaves the group with fewer members. A membership that somebody
/// adds meanwhile has the id of this group, so it is none of a later group of the same name.
pub(super) fn delete(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [given] = arguments.exactly()?;
    let name = existing_name(given)?;
    if !has_record(present, RecordKey::Group(&name)) {
        return Err(ConsoleError::unknown_group(&name));
    }
    let records = present.records();
    let id = records.groups.get(&name).map(|group| group.id);
    let is_member = |groups: &[Membership]| groups.iter().any(|membership| membership.name == name);
    for (user, _) in records.users.iter().filter(|(_, record)| is_member(&record.groups)) {
        leave(present, RecordKey::User(user), &|record: &mut UserRecord| {
            record.groups.retain(|membership| membership.name != name);
        })?;
    }
    for (group, _) in records.groups.iter().filter(|(_, record)| is_member(&record.groups)) {
        leave(present, RecordKey::Group(group), &|record: &mut GroupRecord| {
            record.groups.retain(|membership| membership.name != name);
        })?;
    }
    present.store.change(&RecordKey::Group(&name).text(), &|present| {
        let now = present.and_then(|text| GroupRecord::read(text).ok()).map(|record| record.id);
        // If it has another id, somebody else has deleted this group and added another one.
        Ok(if present.is_some() && now == id { Edit::Remove } else { Edit::Keep })
    })?;
    Ok(Answer::new(format!("Successfully deleted {}", shown(given)), json!({ "deleted": { "group": name } })))
}

/// Takes somebody out of a group. Who was deleted meanwhile is in none.
fn leave<R: Record>(present: &Present<'_>, key: RecordKey<'_>, apply: &dyn Fn(&mut R)) -> Result<(), ConsoleError> {
    present.store.change(&key.text(), &|text| {
        let Some(mut record) = text.and_then(|text| R::read(text).ok()) else { return Ok(Edit::Keep) };
        apply(&mut record);
        let new = record.text().map_err(ConsoleError::failed)?;
        Ok(if text == Some(new.as_str()) { Edit::Keep } else { Edit::Set(new) })
    })
}
