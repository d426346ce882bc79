//! Users: add, alter and delete.

use super::arguments::Arguments;
use super::options::GivenOptions;
use super::present::{Present, existing_name, new_name};
use super::{Answer, ConsoleError, Edit, print_roles};
use crate::record::{RecordKey, UserRecord};
use crate::shown::shown;
use serde_json::json;

/// Adds a user. As Riak's script does, the answer shows the user.
pub(super) fn add(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let ([name], options) = arguments.beginning()?;
    let options = GivenOptions::read(options)?;
    let name = new_name(name)?;
    if present.records().users.contains_key(&name) {
        return Err(ConsoleError::name_in_use());
    }
    let mut record = UserRecord::new(present.new_id()?);
    record.groups = options.memberships(present)?.unwrap_or_default();
    record.password = options.stored_password(present)?;
    record.options = options.others;
    present.add(RecordKey::User(&name), &record)?;
    Ok(print_roles::one_user(present, &name))
}

/// Changes the options that are given, and keeps the others. As Riak's script does, the answer
/// shows the user.
pub(super) fn alter(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let ([name], options) = arguments.beginning()?;
    let options = GivenOptions::read(options)?;
    let name = existing_name(name)?;
    let missing = || ConsoleError::unknown_user(&name);
    if !has_record(present, RecordKey::User(&name)) {
        return Err(missing());
    }
    let (groups, password) = (options.memberships(present)?, options.stored_password(present)?);
    present.change(RecordKey::User(&name), &missing, &|record: &mut UserRecord| {
        if let Some(groups) = &groups {
            record.groups.clone_from(groups);
        }
        if let Some(password) = &password {
            record.password = Some(password.clone());
        }
        record.options.extend(options.others.clone());
    })?;
    Ok(print_roles::one_user(present, &name))
}

/// Deletes a user, with its sources and grants.
pub(super) fn delete(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [given] = arguments.exactly()?;
    let name = existing_name(given)?;
    present.store.change(&RecordKey::User(&name).text(), &|present| match present {
        Some(_) => Ok(Edit::Remove),
        None => Err(ConsoleError::unknown_user(&name)),
    })?;
    Ok(Answer::new(format!("Successfully deleted {}", shown(given)), json!({ "deleted": { "user": name } })))
}

/// Whether there is a record, also one that cannot be read.
pub(super) fn has_record(present: &Present<'_>, key: RecordKey<'_>) -> bool {
    let key = key.text();
    present.store.records().iter().any(|(other, _)| *other == key)
}
