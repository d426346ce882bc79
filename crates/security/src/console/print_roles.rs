//! Users and groups as tables.

use super::arguments::Arguments;
use super::present::Present;
use super::table::{Column, options_term, table, wrapped};
use super::{Answer, ConsoleError};
use crate::{Group, Roles, StoredPassword, User, name};
use serde_json::{Value, json};

const USER_COLUMNS: [Column; 4] = [("username", 10), ("member of", 15), ("password", 40), ("options", 30)];
const GROUP_COLUMNS: [Column; 3] = [("group", 10), ("member of", 15), ("options", 30)];

/// The width of a list of groups, in characters. It is wider than the least width of its column.
const MEMBER_OF: usize = 20;

/// What stands for a hash that is not shown.
const HIDDEN: &str = "(not shown)";

/// Shows all users.
pub(super) fn users(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [] = arguments.exactly()?;
    let roles = present.roles();
    Ok(answer_of_users(present, &roles, &roles.users()))
}

/// Shows a user.
pub(super) fn user(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [given] = arguments.exactly()?;
    let (roles, name) = (present.roles(), name::stored(given));
    let user = roles.user(&name).ok_or_else(|| ConsoleError::unknown_user(&name))?;
    Ok(answer_of_users(present, &roles, &[user]))
}

/// Shows a user that was just changed; nothing if somebody else has deleted it.
pub(super) fn one_user(present: &Present<'_>, name: &str) -> Answer {
    let roles = present.roles();
    let user: Vec<&User> = roles.user(name).into_iter().collect();
    answer_of_users(present, &roles, &user)
}

/// Shows all groups.
pub(super) fn groups(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [] = arguments.exactly()?;
    let roles = present.roles();
    Ok(answer_of_groups(&roles, &roles.groups()))
}

/// Shows a group.
pub(super) fn group(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [given] = arguments.exactly()?;
    let (roles, name) = (present.roles(), name::stored(given));
    let group = roles.group(&name).ok_or_else(|| ConsoleError::unknown_group(&name))?;
    Ok(answer_of_groups(&roles, &[group]))
}

fn answer_of_users(present: &Present<'_>, roles: &Roles, users: &[&User]) -> Answer {
    let row = |user: &&User| {
        let groups = roles.groups_of(&user.groups).map(|group| &*group.name);
        let digits = user.password.as_ref().map(|password| match present.shows_hashes {
            true => password.digits(),
            false => HIDDEN.to_owned(),
        });
        vec![user.name.to_string(), wrapped(groups, MEMBER_OF), digits.unwrap_or_default(), options_term(&user.options)]
    };
    let rows: Vec<Vec<String>> = users.iter().map(row).collect();
    let json: Vec<Value> = users.iter().map(|user| json_of_user(roles, user)).collect();
    Answer::new(table(None, &USER_COLUMNS, &rows), json!({ "users": json }))
}

fn answer_of_groups(roles: &Roles, groups: &[&Group]) -> Answer {
    let row = |group: &&Group| {
        let above = roles.groups_of(&group.groups).map(|other| &*other.name);
        vec![group.name.to_string(), wrapped(above, MEMBER_OF), options_term(&group.options)]
    };
    let json = |group: &&Group| {
        let above: Vec<&str> = roles.groups_of(&group.groups).map(|other| &*other.name).collect();
        json!({ "name": &*group.name, "groups": above, "options": group.options })
    };
    let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
    let json: Vec<Value> = groups.iter().map(json).collect();
    Answer::new(table(None, &GROUP_COLUMNS, &rows), json!({ "groups": json }))
}

/// A user without its hash: only how it is hashed.
fn json_of_user(roles: &Roles, user: &User) -> Value {
    let groups: Vec<&str> = roles.groups_of(&user.groups).map(|group| &*group.name).collect();
    let password = user.password.as_ref().map(StoredPassword::method);
    json!({ "name": &*user.name, "groups": groups, "password": password, "options": user.options })
}
