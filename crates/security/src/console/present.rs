//! The records as a command finds and changes them.

use super::{ConsoleError, Edit, RecordStore, World};
use crate::Roles;
use crate::bounds::{NAME_BYTES_MAX, RECORDS_MAX};
use crate::name;
use crate::record::{Record, RecordKey, Records, RoleId, Unreadable};
use crate::shown::shown;

/// What a command works with.
pub(super) struct Present<'a> {
    pub(super) store: &'a dyn RecordStore,
    pub(super) world: &'a dyn World,
    pub(super) known_permissions: &'a [&'a str],
    /// Whether texts show the hashes of passwords, as Riak's do.
    pub(super) shows_hashes: bool,
}

/// What a change does with a record that is damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Damaged {
    /// It refuses to change it.
    Refused,
    /// It begins anew.
    Replaced,
}

impl Present<'_> {
    /// All records as they are now.
    pub(super) fn records(&self) -> Records {
        let records = self.store.records();
        Records::read(records.iter().map(|(key, value)| (key.as_bytes(), value.as_str())))
    }

    /// What follows from all records as they are now.
    pub(super) fn roles(&self) -> Roles {
        Roles::new(self.records())
    }

    /// An id that no other user or group has had.
    pub(super) fn new_id(&self) -> Result<RoleId, ConsoleError> {
        let mut bytes = [0; 8];
        self.world.random_bytes(&mut bytes)?;
        Ok(RoleId(u64::from_be_bytes(bytes)))
    }

    /// Adds a record. The error says if there is one already.
    pub(super) fn add(&self, key: RecordKey<'_>, record: &impl Record) -> Result<(), ConsoleError> {
        let text = text_of(key, record)?;
        if self.store.records().len() >= RECORDS_MAX {
            return Err(ConsoleError::refused(format!("There can be at most {} users and groups", RECORDS_MAX - 2)));
        }
        self.store.change(&key.text(), &|present| match present {
            None => Ok(Edit::Set(text.clone())),
            Some(_) => Err(ConsoleError::name_in_use()),
        })
    }

    /// Changes the record of a user or a group, which has to be there.
    pub(super) fn change<R: Record>(
        &self,
        key: RecordKey<'_>,
        missing: &dyn Fn() -> ConsoleError,
        apply: &dyn Fn(&mut R),
    ) -> Result<(), ConsoleError> {
        self.store.change(&key.text(), &|present| {
            let present = present.ok_or_else(missing)?;
            let mut record = R::read(present).map_err(|why| unreadable(key, &why))?;
            apply(&mut record);
            edit_to(present, text_of(key, &record)?)
        })
    }

    /// Changes a record that has a default.
    pub(super) fn change_or_create<R: Record + Default>(
        &self,
        key: RecordKey<'_>,
        damaged: Damaged,
        apply: &dyn Fn(&mut R),
    ) -> Result<(), ConsoleError> {
        self.store.change(&key.text(), &|present| {
            let mut record = match present.map(R::read) {
                None => R::default(),
                Some(Ok(record)) => record,
                Some(Err(Unreadable::Damaged(_))) if damaged == Damaged::Replaced => R::default(),
                Some(Err(why)) => return Err(unreadable(key, &why)),
            };
            apply(&mut record);
            edit_to(present.unwrap_or_default(), text_of(key, &record)?)
        })
    }
}

fn edit_to(present: &str, text: String) -> Result<Edit, ConsoleError> {
    Ok(if present == text { Edit::Keep } else { Edit::Set(text) })
}

fn text_of(key: RecordKey<'_>, record: &impl Record) -> Result<String, ConsoleError> {
    record.text().map_err(|why| ConsoleError::refused(format!("Too much for {}: {why}", shown(&key.text()))))
}

fn unreadable(key: RecordKey<'_>, why: &Unreadable) -> ConsoleError {
    ConsoleError::refused(format!("The record '{}' cannot be read: {why}", shown(&key.text())))
}

/// The stored form of the name of a new user or group.
pub(super) fn new_name(given: &str) -> Result<String, ConsoleError> {
    let name = name::stored(given);
    if name::is_reserved(&name) {
        return Err(ConsoleError::reserved_name());
    }
    if !name::is_legal(&name) {
        return Err(ConsoleError::illegal_name());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(ConsoleError::refused(format!("A name has at most {NAME_BYTES_MAX} bytes")));
    }
    Ok(name)
}

/// The stored form of the name of a user or group that exists, or is unknown. As in Riak, `all` can
/// neither be changed nor deleted.
pub(super) fn existing_name(given: &str) -> Result<String, ConsoleError> {
    let name = name::stored(given);
    if name == "all" { Err(ConsoleError::reserved_name()) } else { Ok(name) }
}
