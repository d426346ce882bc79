//! Sources as a table.

use super::arguments::Arguments;
use super::present::Present;
use super::table::{Column, options_term, table, wrapped};
use super::{Answer, ConsoleError};
use crate::{Roles, Source};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const COLUMNS: [Column; 4] = [("users", 20), ("cidr", 10), ("source", 10), ("options", 10)];

/// The width of a list of users, in characters.
const USERS: usize = 20;

/// Users who have the same source.
struct Row<'a> {
    users: Vec<&'a str>,
    source: &'a Source,
}

/// Shows all sources in the order in which they are looked at: more bits first, and those of users
/// before that of all. Users who have the same source are in one row.
pub(super) fn sources(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    let [] = arguments.exactly()?;
    let roles = present.roles();
    let (mut cells, mut json): (Vec<Vec<String>>, Vec<Value>) = (Vec::new(), Vec::new());
    for Row { users, source } in rows(&roles) {
        let (range, kind) = (source.range.to_string(), source.kind.name());
        json.push(json!({ "users": users, "cidr": range, "source": kind, "options": source.options }));
        cells.push(vec![wrapped(users, USERS), range, kind.to_owned(), options_term(&source.options)]);
    }
    Ok(Answer::new(table(None, &COLUMNS, &cells), json!({ "sources": json })))
}

fn rows(roles: &Roles) -> Vec<Row<'_>> {
    let mut grouped: BTreeMap<_, Row<'_>> = BTreeMap::new();
    let of_all = roles.sources_of_all().iter().map(|source| (true, "all", source));
    let of_users =
        roles.users().into_iter().flat_map(|user| user.sources.iter().map(|source| (false, &*user.name, source)));
    for (is_of_all, name, source) in of_all.chain(of_users) {
        let place = (Reverse(source.range.bits()), is_of_all, source.range.first(), source.kind, &source.options);
        grouped.entry(place).or_insert_with(|| Row { users: Vec::new(), source }).users.push(name);
    }
    grouped.into_values().collect()
}
