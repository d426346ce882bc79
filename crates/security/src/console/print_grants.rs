//! The grants of a user or a group as tables.

use super::arguments::Arguments;
use super::present::Present;
use super::table::{Column, cell, table, wrapped};
use super::{Answer, ConsoleError};
use crate::name;
use crate::record::{Grant, RecordKey};
use crate::roles::OwnedGrant;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const INHERITED: [Column; 4] = [("group", 20), ("type", 10), ("bucket", 10), ("grants", 40)];
const OWN: [Column; 3] = [("type", 10), ("bucket", 10), ("grants", 40)];

/// The width of a list of permissions, in characters.
const PERMISSIONS: usize = 40;

/// What grants are on, and which they are.
type Resource<'a> = (Option<&'a str>, Option<&'a str>);
type Cumulative<'a> = BTreeMap<Resource<'a>, BTreeSet<&'a str>>;

/// Shows the grants of a user, of a group, or of both if both have the name.
pub(super) fn grants(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [given] = arguments.exactly()?;
    let (roles, name) = (present.roles(), name::stored(given));
    let (user, group) = match (name.strip_prefix("user/"), name.strip_prefix("group/")) {
        (Some(user), _) => (roles.user(user), None),
        (None, Some(group)) => (None, roles.group(group)),
        (None, None) => (roles.user(&name), roles.group(&name)),
    };
    let mut answers = Vec::new();
    if let Some(user) = user {
        answers.push(of_role(&RecordKey::User(&user.name).text(), &roles.all_grants_of_user(user)));
    }
    if let Some(group) = group {
        answers.push(of_role(&RecordKey::Group(&group.name).text(), &roles.all_grants_of_group(group)));
    }
    if answers.is_empty() {
        let plain = name.strip_prefix("user/").or(name.strip_prefix("group/")).unwrap_or(&name);
        return Err(ConsoleError::unknown_name(plain));
    }
    let (texts, json): (Vec<String>, Vec<Value>) = answers.into_iter().unzip();
    // The tables stand below each other, with a blank line between them.
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    Ok(Answer::new(texts.join("\n"), json!({ "roles": json })))
}

fn of_role(role: &str, all: &[OwnedGrant<'_>]) -> (String, Value) {
    let mut inherited: Vec<&OwnedGrant<'_>> = all.iter().filter(|owned| owned.group.is_some()).collect();
    inherited.sort_by_key(|owned| (owned.group == Some("all"), owned.group, owned.grant.resource()));
    let mut own: Vec<&Grant> = all.iter().filter(|owned| owned.group.is_none()).map(|owned| owned.grant).collect();
    own.sort_by_key(|grant| grant.resource());
    let mut cumulative = Cumulative::new();
    for owned in all {
        let permissions = owned.grant.permissions.iter().map(String::as_str);
        cumulative.entry(owned.grant.resource()).or_default().extend(permissions);
    }

    let row = |resource: Resource<'_>, permissions: Vec<&str>| {
        let shown = |name: Option<&str>| name.map_or_else(|| "*".to_owned(), cell);
        vec![shown(resource.0), shown(resource.1), wrapped(permissions, PERMISSIONS)]
    };
    let of_grant = |grant: &Grant| row(grant.resource(), grant.permissions.iter().map(String::as_str).collect());
    let of_inherited = |owned: &&OwnedGrant<'_>| {
        let mut cells = of_grant(owned.grant);
        cells.insert(0, owned.group.unwrap_or_default().to_owned());
        cells
    };
    let of_cumulative = |(resource, permissions): (&Resource<'_>, &BTreeSet<&str>)| {
        row(*resource, permissions.iter().copied().collect())
    };
    let tables = [
        (format!("Inherited permissions ({role})"), &INHERITED[..], inherited.iter().map(of_inherited).collect()),
        (format!("Dedicated permissions ({role})"), &OWN[..], own.iter().map(|grant| of_grant(grant)).collect()),
        (format!("Cumulative permissions ({role})"), &OWN[..], cumulative.iter().map(of_cumulative).collect()),
    ];
    let drawn =
        tables.iter().map(|(title, columns, rows): &(_, _, Vec<Vec<String>>)| table(Some(title), columns, rows));
    let text = drawn.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    (text, json_of_role(role, &inherited, &own, &cumulative))
}

fn json_of_role(role: &str, inherited: &[&OwnedGrant<'_>], own: &[&Grant], cumulative: &Cumulative<'_>) -> Value {
    let of_inherited = |owned: &&OwnedGrant<'_>| {
        let (bucket_type, bucket) = owned.grant.resource();
        let permissions = &owned.grant.permissions;
        json!({ "group": owned.group, "type": bucket_type, "bucket": bucket, "permissions": permissions })
    };
    let of_grant = |grant: &&Grant| {
        let (bucket_type, bucket) = grant.resource();
        json!({ "type": bucket_type, "bucket": bucket, "permissions": grant.permissions })
    };
    let of_cumulative = |((bucket_type, bucket), permissions): (&Resource<'_>, &BTreeSet<&str>)| json!({ "type": bucket_type, "bucket": bucket, "permissions": permissions });
    json!({
        "role": role,
        "inherited": inherited.iter().map(of_inherited).collect::<Vec<_>>(),
        "dedicated": own.iter().map(of_grant).collect::<Vec<_>>(),
        "cumulative": cumulative.iter().map(of_cumulative).collect::<Vec<_>>(),
    })
}
