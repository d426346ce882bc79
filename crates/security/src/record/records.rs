//! All records, read.

use super::{AllRecord, GroupRecord, Record, RecordKey, StatusRecord, UserRecord};
use crate::UnreadableRecord;
use std::collections::BTreeMap;

/// All records that can be read, and which cannot.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) status: Option<Result<StatusRecord, ()>>,
    pub(crate) all: Option<Result<AllRecord, ()>>,
    pub(crate) users: BTreeMap<String, UserRecord>,
    pub(crate) groups: BTreeMap<String, GroupRecord>,
    pub(crate) unreadable: Vec<UnreadableRecord>,
}

impl Records {
    /// Reads records.
    pub(crate) fn read<'a>(records: impl IntoIterator<Item = (&'a [u8], &'a str)>) -> Self {
        let mut all = Self::default();
        for (key, value) in records {
            if let Err(why) = all.add(key, value) {
                all.unreadable.push(UnreadableRecord::new(key, why));
            }
        }
        all
    }

    fn add(&mut self, key: &[u8], value: &str) -> Result<(), String> {
        let why = |why: super::Unreadable| why.to_string();
        match RecordKey::read(key)? {
            RecordKey::Status => {
                let read = StatusRecord::read(value).map_err(why);
                self.status = Some(read.clone().map_err(drop));
                read.map(drop)
            }
            RecordKey::All => {
                let read = AllRecord::read(value).map_err(why);
                self.all = Some(read.clone().map_err(drop));
                read.map(drop)
            }
            RecordKey::User(name) => {
                self.users.insert(name.to_owned(), UserRecord::read(value).map_err(why)?);
                Ok(())
            }
            RecordKey::Group(name) => {
                self.groups.insert(name.to_owned(), GroupRecord::read(value).map_err(why)?);
                Ok(())
            }
        }
    }
}
