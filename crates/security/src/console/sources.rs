//! Sources: add and delete.

use super::arguments::{Arguments, parts};
use super::options::GivenOptions;
use super::present::{Damaged, Present};
use super::{Answer, ConsoleError, Edit};
use crate::record::{AllRecord, Record, RecordKey, UserRecord};
use crate::shown::shown;
use crate::{AddressRange, Source, SourceKind, name};
use serde_json::json;

/// Whom a source is for.
enum Users {
    All,
    Named(Vec<String>),
}

impl Users {
    fn read(list: &str, arguments: Arguments<'_>) -> Result<Self, ConsoleError> {
        let mut names: Vec<String> = parts(list).map(name::stored).collect();
        names.sort_unstable();
        names.dedup();
        match names.as_slice() {
            [] => Err(arguments.usage()),
            [one] if one == "all" => Ok(Self::All),
            _ => Ok(Self::Named(names)),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::All => json!("all"),
            Self::Named(names) => json!(names),
        }
    }
}

fn read_range(text: &str) -> Result<AddressRange, ConsoleError> {
    text.parse().map_err(|why| ConsoleError::refused(format!("Invalid CIDR {}: {why}", shown(text))))
}

fn read_kind(text: &str) -> Result<SourceKind, ConsoleError> {
    let small = text.to_lowercase();
    let found = SourceKind::ALL.into_iter().find(|kind| kind.name() == small);
    found.ok_or_else(|| match small.as_str() {
        "pam" => ConsoleError::refused(
            "Sources of the kind pam do not exist here. Use password, with passwords set by alter-user, or \
             certificate",
        ),
        _ => {
            ConsoleError::refused(format!("Source not recognized: {}. Use trust, password or certificate", shown(text)))
        }
    })
}

/// Adds a source for all or for some users, in the place of one for the same addresses.
pub(super) fn add(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let ([users, cidr, kind], options) = arguments.beginning()?;
    let (users, range, kind) = (Users::read(users, arguments)?, read_range(cidr)?, read_kind(kind)?);
    let options = GivenOptions::read(options)?.without_password("source")?.others;
    let source = Source { range, kind, options };
    let put = |sources: &mut Vec<Source>| {
        sources.retain(|other| other.range != range);
        sources.push(source.clone());
    };
    match &users {
        Users::All => {
            let apply = |record: &mut AllRecord| put(&mut record.sources);
            present.change_or_create(RecordKey::All, Damaged::Refused, &apply)?;
        }
        Users::Named(names) => {
            let known = present.records().users;
            let unknown: Vec<String> = names.iter().filter(|name| !known.contains_key(*name)).cloned().collect();
            if !unknown.is_empty() {
                return Err(ConsoleError::unknown_users(&unknown));
            }
            for name in names {
                let missing = || ConsoleError::unknown_users(std::slice::from_ref(name));
                let apply = |record: &mut UserRecord| put(&mut record.sources);
                present.change(RecordKey::User(name), &missing, &apply)?;
            }
        }
    }
    let json = json!({ "added": { "users": users.json(), "cidr": range.to_string(), "source": kind.name() } });
    Ok(Answer::new("Successfully added source", json))
}

/// Deletes a source. As in Riak, it need not be there, and the users need not exist.
pub(super) fn delete(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [users, cidr] = arguments.exactly()?;
    let (users, range) = (Users::read(users, arguments)?, read_range(cidr)?);
    let delete = |sources: &mut Vec<Source>| sources.retain(|other| other.range != range);
    match &users {
        // A record that is damaged keeps everybody out. This is the way to be rid of it.
        Users::All if present.records().all.is_some() => {
            let apply = |record: &mut AllRecord| delete(&mut record.sources);
            present.change_or_create(RecordKey::All, Damaged::Replaced, &apply)?;
        }
        Users::All => {}
        Users::Named(names) => {
            for name in names {
                delete_of_user(present, name, &delete)?;
            }
        }
    }
    Ok(Answer::new("Deleted source", json!({ "deleted": { "users": users.json(), "cidr": range.to_string() } })))
}

fn delete_of_user(present: &Present<'_>, name: &str, delete: &dyn Fn(&mut Vec<Source>)) -> Result<(), ConsoleError> {
    if name::check(name).is_err() {
        return Ok(());
    }
    present.store.change(&RecordKey::User(name).text(), &|text| {
        let Some(text) = text else { return Ok(Edit::Keep) };
        let mut record = UserRecord::read(text)
            .map_err(|why| ConsoleError::refused(format!("The record of the user {name} cannot be read: {why}")))?;
        delete(&mut record.sources);
        let new = record.text().map_err(ConsoleError::failed)?;
        Ok(if new == text { Edit::Keep } else { Edit::Set(new) })
    })
}
