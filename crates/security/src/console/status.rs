//! Whether security is on.

use super::arguments::Arguments;
use super::present::{Damaged, Present};
use super::{Answer, ConsoleError};
use crate::Roles;
use crate::record::{RecordKey, StatusRecord};
use serde_json::json;

/// Switches security on.
pub(super) fn enable(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    switch(present, arguments, true)
}

/// Switches security off.
pub(super) fn disable(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    switch(present, arguments, false)
}

fn switch(present: &Present<'_>, arguments: Arguments<'_>, enabled: bool) -> Result<Answer, ConsoleError> {
    let [] = arguments.exactly()?;
    // A record that is damaged counts as on. This is the way to be rid of it.
    present.change_or_create(RecordKey::Status, Damaged::Replaced, &|record: &mut StatusRecord| {
        record.enabled = enabled;
    })?;
    Ok(Answer::new("", json!({ "enabled": enabled })))
}

/// Shows whether security is on. The answer for programs lists the records that cannot be read.
pub(super) fn status(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [] = arguments.exactly()?;
    let mut records = present.records();
    let unreadable: Vec<String> = records.unreadable.drain(..).map(|record| record.to_string()).collect();
    let roles = Roles::new(records);
    let text = if roles.is_enabled() { "Enabled" } else { "Disabled" };
    let json = json!({
        "enabled": roles.is_enabled(),
        "users": roles.users().len(),
        "groups": roles.groups().len(),
        "unreadable": unreadable,
    });
    Ok(Answer::new(text, json))
}
