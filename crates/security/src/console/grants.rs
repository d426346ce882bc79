//! Grants: grant and revoke.

use super::arguments::{Arguments, parts};
use super::present::{Damaged, Present};
use super::{Answer, ConsoleError};
use crate::bounds::BUCKET_BYTES_MAX;
use crate::name;
use crate::record::{AllRecord, Grant, GroupRecord, RecordKey, Records, UserRecord};
use serde_json::json;
use std::collections::BTreeSet;

/// Whose grants are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    All,
    User(String),
    Group(String),
}

impl Role {
    fn json(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::User(name) => RecordKey::User(name).text(),
            Self::Group(name) => RecordKey::Group(name).text(),
        }
    }
}

/// What a command grants or revokes, and to or from whom.
struct Change {
    grant: Grant,
    roles: Vec<Role>,
}

/// Grants permissions.
pub(super) fn grant(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let change = Change::read(present, arguments, "to")?;
    change.apply(
        present,
        &|grants| match grants.iter_mut().find(|other| other.resource() == change.grant.resource()) {
            Some(other) => other.permissions.extend(change.grant.permissions.iter().cloned()),
            None => grants.push(change.grant.clone()),
        },
    )?;
    Ok(Answer::new("Successfully granted", json!({ "granted": change.json() })))
}

/// Revokes permissions. As in Riak, they need not have been granted.
pub(super) fn revoke(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let change = Change::read(present, arguments, "from")?;
    change.apply(present, &|grants| {
        for other in grants.iter_mut().filter(|other| other.resource() == change.grant.resource()) {
            other.permissions.retain(|permission| !change.grant.permissions.contains(permission));
        }
        grants.retain(|other| !other.permissions.is_empty());
    })?;
    Ok(Answer::new("Successfully revoked", json!({ "revoked": change.json() })))
}

impl Change {
    fn read(present: &Present<'_>, arguments: Arguments<'_>, before_roles: &str) -> Result<Self, ConsoleError> {
        let words = arguments.all();
        let (permissions, bucket_type, bucket, roles) = match words.as_slice() {
            [permissions, "on", "any", word, roles] if *word == before_roles => (permissions, None, None, roles),
            [permissions, "on", bucket_type, bucket, word, roles] if *word == before_roles => {
                (permissions, Some(*bucket_type), Some(*bucket), roles)
            }
            [permissions, "on", bucket_type, word, roles] if *word == before_roles => {
                (permissions, Some(*bucket_type), None, roles)
            }
            _ => return Err(arguments.usage()),
        };
        let names = [bucket_type, bucket];
        if names.iter().flatten().any(|name| name.is_empty() || name.len() > BUCKET_BYTES_MAX) {
            return Err(ConsoleError::refused(format!(
                "The names of a bucket and of a bucket type have 1 to {BUCKET_BYTES_MAX} bytes"
            )));
        }
        let permissions: BTreeSet<&str> = parts(permissions).collect();
        let names: BTreeSet<&str> = parts(roles).collect();
        if permissions.is_empty() || names.is_empty() {
            return Err(arguments.usage());
        }
        let unknown = permissions.iter().find(|name| !present.known_permissions.contains(name));
        let roles = roles_of(&present.records(), &names, unknown.map(|name| ConsoleError::unknown_permission(name)))?;
        Ok(Self { grant: Grant::new(bucket_type, bucket, permissions), roles })
    }

    fn apply(&self, present: &Present<'_>, apply: &dyn Fn(&mut Vec<Grant>)) -> Result<(), ConsoleError> {
        for role in &self.roles {
            match role {
                Role::All => {
                    let apply = |record: &mut AllRecord| apply(&mut record.grants);
                    present.change_or_create(RecordKey::All, Damaged::Refused, &apply)?;
                }
                Role::User(name) => {
                    let missing = || ConsoleError::unknown_names(std::slice::from_ref(name));
                    let apply = |record: &mut UserRecord| apply(&mut record.grants);
                    present.change(RecordKey::User(name), &missing, &apply)?;
                }
                Role::Group(name) => {
                    let missing = || ConsoleError::unknown_names(std::slice::from_ref(name));
                    let apply = |record: &mut GroupRecord| apply(&mut record.grants);
                    present.change(RecordKey::Group(name), &missing, &apply)?;
                }
            }
        }
        Ok(())
    }

    fn json(&self) -> serde_json::Value {
        let roles: Vec<String> = self.roles.iter().map(Role::json).collect();
        json!({
            "permissions": self.grant.permissions,
            "type": self.grant.bucket_type,
            "bucket": self.grant.bucket,
            "roles": roles,
        })
    }
}

/// Finds the roles of some names. A name that both a user and a group has needs a prefix. The
/// errors come in Riak's order: unknown names, ambiguous names, and then `other`.
fn roles_of(records: &Records, names: &BTreeSet<&str>, other: Option<ConsoleError>) -> Result<Vec<Role>, ConsoleError> {
    let (mut roles, mut unknown, mut ambiguous) = (Vec::new(), Vec::new(), Vec::new());
    for given in names {
        if *given == "all" && names.len() == 1 {
            roles.push(Role::All);
            continue;
        }
        let name = name::stored(given);
        let (of_users, of_groups, name) = match (name.strip_prefix("user/"), name.strip_prefix("group/")) {
            (Some(user), _) => (true, false, user.to_owned()),
            (None, Some(group)) => (false, true, group.to_owned()),
            (None, None) => (true, true, name),
        };
        let is_user = of_users && records.users.contains_key(&name);
        let is_group = of_groups && records.groups.contains_key(&name);
        let role = match (is_user, is_group) {
            (true, true) => {
                ambiguous.push(name);
                continue;
            }
            (true, false) => Role::User(name),
            (false, true) => Role::Group(name),
            (false, false) => {
                unknown.push(name);
                continue;
            }
        };
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    let mut errors = Vec::new();
    if !unknown.is_empty() {
        errors.push(ConsoleError::unknown_names(&unknown));
    }
    if !ambiguous.is_empty() {
        errors.push(ConsoleError::ambiguous_names(&ambiguous));
    }
    errors.extend(other);
    if errors.is_empty() { Ok(roles) } else { Err(ConsoleError::joined(&errors)) }
}
