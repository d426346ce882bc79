//! Options of the form name=value.

use super::arguments::parts;
use super::{ConsoleError, Present};
use crate::bounds::OPTION_NAME_BYTES_MAX;
use crate::name;
use crate::password::StoredPassword;
use crate::record::{Membership, Options, check_options};
use crate::shown::shown;

/// The options of a command, with those that mean something set apart.
#[derive(Default)]
pub(super) struct GivenOptions {
    /// A password in clear.
    pub(super) password: Option<String>,
    /// A hash that was computed elsewhere, as records have it.
    pub(super) password_hash: Option<String>,
    /// The names of groups, with commas between them.
    pub(super) groups: Option<String>,
    /// All others.
    pub(super) others: Options,
}

impl GivenOptions {
    /// Reads options. Names are stored in small letters. Of two options of the same name the last
    /// one counts.
    pub(super) fn read(arguments: &[String]) -> Result<Self, ConsoleError> {
        let mut given = Self::default();
        for argument in arguments {
            let Some((option, value)) = argument.split_once('=') else {
                return Err(ConsoleError::refused(format!(
                    "Invalid option \"{}\", options are of the form key=value",
                    shown(argument)
                )));
            };
            let option = name::stored(option);
            let value = value.to_owned();
            match option.as_str() {
                "password" => given.password = Some(value),
                "password-hash" => given.password_hash = Some(value),
                "groups" => given.groups = Some(value),
                _ => drop(given.others.insert(option, value)),
            }
        }
        check_options(&given.others).map_err(|why| ConsoleError::refused(format!("Invalid options: {why}")))?;
        debug_assert!(given.others.keys().all(|name| name.len() <= OPTION_NAME_BYTES_MAX));
        Ok(given)
    }

    /// Refuses a password where there can be none.
    pub(super) fn without_password(self, of_what: &str) -> Result<Self, ConsoleError> {
        if self.password.is_some() || self.password_hash.is_some() {
            return Err(ConsoleError::refused(format!("A {of_what} has no password")));
        }
        Ok(self)
    }

    /// The hash of the password, if there is one. It takes as long as a comparison.
    pub(super) fn stored_password(&self, present: &Present<'_>) -> Result<Option<StoredPassword>, ConsoleError> {
        let stored = match (&self.password, &self.password_hash) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(ConsoleError::refused("Give either a password or a password-hash, not both"));
            }
            (Some(password), None) => {
                let mut salt = [0; 16];
                present.world.random_bytes(&mut salt)?;
                StoredPassword::new_argon2id(password.as_bytes(), salt)
            }
            (None, Some(hash)) => StoredPassword::from_text(hash),
        };
        stored.map(Some).map_err(|why| ConsoleError::refused(format!("Invalid password: {why}")))
    }

    /// The memberships that are given, if any are; an empty list takes the role out of all groups.
    /// As in Riak, the group `all` is left out, because everybody is in it.
    pub(super) fn memberships(&self, present: &Present<'_>) -> Result<Option<Vec<Membership>>, ConsoleError> {
        let Some(list) = &self.groups else { return Ok(None) };
        let groups = present.records().groups;
        let (mut found, mut unknown): (Vec<Membership>, Vec<String>) = (Vec::new(), Vec::new());
        for name in parts(list).filter(|name| *name != "all").map(name::stored) {
            match groups.get(&name) {
                _ if found.iter().any(|membership| membership.name == name) => {}
                Some(group) => found.push(Membership { name, id: group.id }),
                None => unknown.push(name),
            }
        }
        if unknown.is_empty() { Ok(Some(found)) } else { Err(ConsoleError::unknown_groups(&unknown)) }
    }
}
