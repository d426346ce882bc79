//! Why a command was not carried out.

use crate::shown::shown;
use ombak_types::suggest::nearest;
use std::fmt;

/// Why a command was not carried out: the text for whoever has given it. It can have several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleError {
    text: String,
}

impl ConsoleError {
    /// The records or the world have failed.
    pub fn failed(why: String) -> Self {
        Self { text: why }
    }

    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self { text: why.into() }
    }

    /// Several reasons, one in each line.
    pub(super) fn joined(errors: &[Self]) -> Self {
        let texts: Vec<&str> = errors.iter().map(|error| error.text.as_str()).collect();
        Self { text: texts.join("\n") }
    }

    pub(super) fn unknown_command<'a>(command: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let help = match nearest(command, known.clone()) {
            Some(near) => format!("Did you mean {near}?"),
            None => format!("The commands are {}.", known.collect::<Vec<_>>().join(", ")),
        };
        Self::refused(format!("Command not recognized: {}. {help}", shown(command)))
    }

    pub(super) fn unknown_user(name: &str) -> Self {
        Self::refused(format!("User not recognized: {}", shown(name)))
    }

    pub(super) fn unknown_group(name: &str) -> Self {
        Self::refused(format!("Group not recognized: {}", shown(name)))
    }

    pub(super) fn unknown_users(names: &[String]) -> Self {
        Self::refused(format!("User(s) not recognized: {}", list(names)))
    }

    pub(super) fn unknown_groups(names: &[String]) -> Self {
        Self::refused(format!("Group(s) not recognized: {}", list(names)))
    }

    pub(super) fn unknown_names(names: &[String]) -> Self {
        Self::refused(format!("Name(s) not recognized: {}", list(names)))
    }

    pub(super) fn unknown_name(name: &str) -> Self {
        Self::refused(format!("Name not recognized: {}", shown(name)))
    }

    pub(super) fn ambiguous_names(names: &[String]) -> Self {
        Self::refused(format!("Ambiguous names need to be prefixed with 'user/' or 'group/': {}", list(names)))
    }

    pub(super) fn unknown_permission(name: &str) -> Self {
        Self::refused(format!("Permission not recognized: {}", shown(name)))
    }

    pub(super) fn reserved_name() -> Self {
        Self::refused("This name is reserved for system use")
    }

    pub(super) fn illegal_name() -> Self {
        Self::refused("Illegal character(s) in name")
    }

    pub(super) fn name_in_use() -> Self {
        Self::refused("This name is already in use")
    }
}

/// How many names an error lists.
const NAMES_MAX: usize = 20;

fn list(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(NAMES_MAX).map(|name| shown(name)).collect();
    if names.len() > NAMES_MAX {
        shown.push(format!("and {} more", names.len() - NAMES_MAX));
    }
    shown.join(", ")
}

impl fmt::Display for ConsoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConsoleError {}
