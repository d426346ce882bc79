//! The keys of records.

use crate::{STATUS_KEY, name};

const ALL_KEY: &str = "all";
const USER: &str = "user/";
const GROUP: &str = "group/";

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKey<'a> {
    /// Whether security is on, and the ciphers.
    Status,
    /// The sources and grants of all users.
    All,
    /// The user of this name.
    User(&'a str),
    /// The group of this name.
    Group(&'a str),
}

impl<'a> RecordKey<'a> {
    /// Reads a key. The error says what is wrong with it.
    pub(crate) fn read(key: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(key).map_err(|_| "the key is not UTF-8".to_owned())?;
        match text {
            STATUS_KEY => Ok(Self::Status),
            ALL_KEY => Ok(Self::All),
            _ => {
                let user = text.strip_prefix(USER).map(Self::User);
                let role = user.or_else(|| text.strip_prefix(GROUP).map(Self::Group));
                let (Some(Self::User(name) | Self::Group(name)), Some(role)) = (role, role) else {
                    return Err("there are no records with such keys".to_owned());
                };
                name::check(name)?;
                Ok(role)
            }
        }
    }

    /// The key as it is stored.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Status => STATUS_KEY.to_owned(),
            Self::All => ALL_KEY.to_owned(),
            Self::User(name) => format!("{USER}{name}"),
            Self::Group(name) => format!("{GROUP}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        for key in [RecordKey::Status, RecordKey::All, RecordKey::User("alice"), RecordKey::Group("ünï")] {
            assert_eq!(RecordKey::read(key.text().as_bytes()), Ok(key));
        }
        for bad in ["", "user/", "user", "users/a", "user/all", "group/A", "user/a b", "status ", "All"] {
            assert!(RecordKey::read(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(RecordKey::read(b"user/\xff").is_err());
    }
}
