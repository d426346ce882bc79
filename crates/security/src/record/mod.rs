//! The records that the metadata keep.
//!
//! | key | value |
//! | --- | --- |
//! | `status` | whether security is on, and the ciphers |
//! | `all` | the sources and grants of all users |
//! | `user/NAME` | a user with its groups, password, sources and grants |
//! | `group/NAME` | a group with its groups and grants |
//!
//! Each value is JSON with a version. What a version does not know makes a record unreadable.

mod all_record;
mod codec;
mod grant;
mod group_record;
mod key;
mod membership;
mod options;
mod records;
mod role_id;
mod status_record;
mod user_record;

pub(crate) use all_record::AllRecord;
pub(crate) use codec::{Record, Unreadable};
pub(crate) use grant::{Grant, check_grants};
pub(crate) use group_record::GroupRecord;
pub(crate) use key::RecordKey;
pub(crate) use membership::{Membership, check_groups};
pub(crate) use options::{Options, check_options};
pub(crate) use records::Records;
pub(crate) use role_id::RoleId;
pub(crate) use status_record::StatusRecord;
pub(crate) use user_record::UserRecord;

/// Checks a record before it is proposed. The error has no part of the value.
pub fn validate(key: &[u8], value: &str) -> Result<(), String> {
    let read = match RecordKey::read(key)? {
        RecordKey::Status => StatusRecord::read(value).map(drop),
        RecordKey::All => AllRecord::read(value).map(drop),
        RecordKey::User(_) => UserRecord::read(value).map(drop),
        RecordKey::Group(_) => GroupRecord::read(value).map(drop),
    };
    read.map_err(|why| why.to_string())
}
