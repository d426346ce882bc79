//! Who the users are, and what they may do.

use crate::record::{
    AllRecord, Grant, GroupRecord, Membership, Record, RecordKey, Records, StatusRecord, Unreadable, UserRecord,
};
use crate::source::{Source, most_specific};
use crate::{EffectiveGrants, Group, UnreadableRecord, User};
use imbl::OrdMap;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

/// The name under which the grants of all are listed.
const ALL: &str = "all";

/// Who the users are, and what they may do, as of one moment. A copy shares what has not been
/// changed since, so a copy and a change cost as much as one record.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    status: Status,
    users: OrdMap<Arc<str>, Arc<User>>,
    groups: OrdMap<Arc<str>, Arc<Group>>,
    all: Arc<OfAll>,
    inherited_version: u64,
}

#[derive(Clone, Debug, Default)]
struct Status {
    is_enabled: bool,
    ciphers: Option<Arc<str>>,
    is_unreadable: bool,
}

#[derive(Debug, Default)]
struct OfAll {
    sources: Vec<Source>,
    grants: Vec<Grant>,
    /// The record cannot be read. It may have a source that is stricter than that of a user.
    is_unreadable: bool,
}

/// A grant, and whose it is. Both names are those of groups, or `all`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedGrant<'a> {
    /// The group; `None` if it is a grant of the role itself.
    pub(crate) group: Option<&'a str>,
    pub(crate) grant: &'a Grant,
}

impl Roles {
    /// Reads all records: keys and values. What cannot be read is returned, and gives nobody
    /// anything: an unreadable user is unknown, and an unreadable group is none. Without the record
    /// of all users nobody has a source. An unreadable status means that security is on.
    pub fn from_records<'a>(records: impl IntoIterator<Item = (&'a [u8], &'a str)>) -> (Self, Vec<UnreadableRecord>) {
        let mut roles = Self::default();
        let changes = records.into_iter().map(|(key, value)| roles.change(key, Some(value)));
        let unreadable = changes.filter_map(Result::err).collect();
        (roles, unreadable)
    }

    pub(crate) fn new(records: Records) -> Self {
        let mut roles = Self::default();
        roles.set_status(records.status);
        roles.set_all(records.all);
        records.users.into_iter().for_each(|(name, record)| roles.set_user(&name, Some(record)));
        records.groups.into_iter().for_each(|(name, record)| roles.set_group(&name, Some(record)));
        roles
    }

    /// Learns that a record has this value now, or is gone. A value that cannot be read is as in
    /// [`Self::from_records`]: what the record said before counts no more.
    pub fn change(&mut self, key: &[u8], value: Option<&str>) -> Result<(), UnreadableRecord> {
        let unreadable = |why: String| UnreadableRecord::new(key, why);
        let changed = match RecordKey::read(key).map_err(unreadable)? {
            RecordKey::Status => {
                let record = value.map(StatusRecord::read);
                self.set_status(record.clone().map(|read| read.map_err(drop)));
                record.transpose().map(drop)
            }
            RecordKey::All => {
                let record = value.map(AllRecord::read);
                self.set_all(record.clone().map(|read| read.map_err(drop)));
                record.transpose().map(drop)
            }
            RecordKey::User(name) => {
                let (record, outcome) = split(value.map(UserRecord::read));
                self.set_user(name, record);
                outcome
            }
            RecordKey::Group(name) => {
                let (record, outcome) = split(value.map(GroupRecord::read));
                self.set_group(name, record);
                outcome
            }
        };
        changed.map_err(|why| unreadable(why.to_string()))
    }

    fn set_status(&mut self, record: Option<Result<StatusRecord, ()>>) {
        self.status = match record {
            None => Status::default(),
            Some(Ok(StatusRecord { enabled, ciphers, .. })) => {
                Status { is_enabled: enabled, ciphers: ciphers.map(Arc::from), is_unreadable: false }
            }
            Some(Err(())) => Status { is_enabled: true, ciphers: None, is_unreadable: true },
        };
    }

    fn set_all(&mut self, record: Option<Result<AllRecord, ()>>) {
        self.all = Arc::new(match record {
            None => OfAll::default(),
            Some(Ok(all)) => OfAll { sources: all.sources, grants: all.grants, is_unreadable: false },
            Some(Err(())) => OfAll { is_unreadable: true, ..OfAll::default() },
        });
        self.inherited_version += 1;
    }

    fn set_user(&mut self, name: &str, record: Option<UserRecord>) {
        let user = record.map(|UserRecord { id, groups, options, password, sources, grants, .. }| {
            Arc::new(User { name: name.into(), id: id.0, password, options, groups, sources, grants })
        });
        match user {
            Some(user) => drop(self.users.insert(user.name.clone(), user)),
            None => drop(self.users.remove(name)),
        }
    }

    fn set_group(&mut self, name: &str, record: Option<GroupRecord>) {
        let group = record.map(|GroupRecord { id, groups, options, grants, .. }| {
            Arc::new(Group { name: name.into(), options, id, groups, grants })
        });
        match group {
            Some(group) => drop(self.groups.insert(group.name.clone(), group)),
            None => drop(self.groups.remove(name)),
        }
        self.inherited_version += 1;
    }

    /// Whether clients have to prove who they are.
    pub fn is_enabled(&self) -> bool {
        self.status.is_enabled
    }

    /// Whether the record that says it cannot be read, so that nothing is known of the ciphers.
    pub fn is_status_unreadable(&self) -> bool {
        self.status.is_unreadable
    }

    /// The ciphers of TLS as they were given, with colons between their names; `None` if the node
    /// chooses them itself.
    pub fn ciphers(&self) -> Option<&str> {
        self.status.ciphers.as_deref()
    }

    /// The user of a name. Names are compared exactly.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.shared_user(name).map(|user| &**user)
    }

    /// The user of a name. Two states of one history have the same allocation of a user exactly if
    /// the record of the user was not changed between them.
    pub fn shared_user(&self, name: &str) -> Option<&Arc<User>> {
        self.users.get(name)
    }

    /// Grows in each history of changes with what users inherit: groups, and what all have.
    pub fn inherited_version(&self) -> u64 {
        self.inherited_version
    }

    /// The group of a name. Names are compared exactly.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(name).map(|group| &**group)
    }

    /// How a user proves who it is from an address; `None` if it cannot. Of the sources that have
    /// the address, the one of the most bits counts. Of two with equally many bits, that of the
    /// user counts before that of all.
    pub fn source_for(&self, user: &str, address: IpAddr) -> Option<&Source> {
        let user = self.user(user)?;
        if self.all.is_unreadable {
            return None;
        }
        let own = most_specific(&user.sources, address);
        let of_all = most_specific(&self.all.sources, address);
        match (own, of_all) {
            (Some(own), Some(of_all)) if of_all.range.bits() > own.range.bits() => Some(of_all),
            (Some(own), _) => Some(own),
            (None, of_all) => of_all,
        }
    }

    /// What a user may do. An unknown user may do nothing.
    pub fn grants_of(&self, user: &str) -> Arc<EffectiveGrants> {
        let grants = self.user(user).map(|user| self.all_grants_of_user(user));
        Arc::new(EffectiveGrants::new(grants.into_iter().flatten().map(|owned| owned.grant)))
    }

    /// The grants of a user: its own, those of its groups, and those of all.
    pub(crate) fn all_grants_of_user<'a>(&'a self, user: &'a User) -> Vec<OwnedGrant<'a>> {
        self.with_inherited(&user.grants, self.groups_above(&user.groups))
    }

    /// The grants of a group: its own, those of its groups, and those of all.
    pub(crate) fn all_grants_of_group<'a>(&'a self, group: &'a Group) -> Vec<OwnedGrant<'a>> {
        let mut above = self.groups_above(&group.groups);
        above.retain(|other| other.name != group.name);
        self.with_inherited(&group.grants, above)
    }

    fn with_inherited<'a>(&'a self, own: &'a [Grant], groups: Vec<&'a Group>) -> Vec<OwnedGrant<'a>> {
        let own = own.iter().map(|grant| OwnedGrant { group: None, grant });
        let of_groups = groups
            .into_iter()
            .flat_map(|group| group.grants.iter().map(|grant| OwnedGrant { group: Some(&group.name), grant }));
        let of_all = self.all.grants.iter().map(|grant| OwnedGrant { group: Some(ALL), grant });
        own.chain(of_groups).chain(of_all).collect()
    }

    /// The groups of which somebody is a member itself.
    pub(crate) fn groups_of<'a>(&'a self, memberships: &'a [Membership]) -> impl Iterator<Item = &'a Group> {
        memberships
            .iter()
            .filter_map(|membership| self.group(&membership.name).filter(|group| group.id == membership.id))
    }

    /// All groups above somebody, each once. Groups can be members of each other in a circle.
    fn groups_above<'a>(&'a self, memberships: &'a [Membership]) -> Vec<&'a Group> {
        let (mut found, mut seen): (Vec<&Group>, HashSet<&str>) = (Vec::new(), HashSet::new());
        let mut next: Vec<&[Membership]> = vec![memberships];
        while let Some(memberships) = next.pop() {
            for group in self.groups_of(memberships) {
                if seen.insert(&group.name) {
                    found.push(group);
                    next.push(&group.groups);
                }
            }
        }
        found
    }

    /// All users, sorted by name.
    pub(crate) fn users(&self) -> Vec<&User> {
        self.users.values().map(|user| &**user).collect()
    }

    /// All groups, sorted by name.
    pub(crate) fn groups(&self) -> Vec<&Group> {
        self.groups.values().map(|group| &**group).collect()
    }

    /// The sources of all users.
    pub(crate) fn sources_of_all(&self) -> &[Source] {
        &self.all.sources
    }
}

/// What was read of a record, and why it could not be.
fn split<T>(read: Option<Result<T, Unreadable>>) -> (Option<T>, Result<(), Unreadable>) {
    match read.transpose() {
        Ok(record) => (record, Ok(())),
        Err(why) => (None, Err(why)),
    }
}
