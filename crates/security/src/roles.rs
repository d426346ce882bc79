//! Who the users are, and what they may do.

use crate::record::{Grant, Membership, Records};
use crate::source::{Source, most_specific};
use crate::{EffectiveGrants, Group, UnreadableRecord, User};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

/// The name under which the grants of all are listed.
const ALL: &str = "all";

/// Who the users are, and what they may do, as of one moment.
#[derive(Debug, Default)]
pub struct Roles {
    is_enabled: bool,
    ciphers: Option<String>,
    users: HashMap<Arc<str>, User>,
    groups: HashMap<Arc<str>, Group>,
    all: OfAll,
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
        let mut records = Records::read(records);
        let unreadable = std::mem::take(&mut records.unreadable);
        (Self::new(records), unreadable)
    }

    pub(crate) fn new(records: Records) -> Self {
        let user = |(name, record): (String, crate::record::UserRecord)| {
            let name: Arc<str> = name.into();
            let crate::record::UserRecord { id, groups, options, password, sources, grants, .. } = record;
            (Arc::clone(&name), User { name, id: id.0, password, options, groups, sources, grants })
        };
        let group = |(name, record): (String, crate::record::GroupRecord)| {
            let name: Arc<str> = name.into();
            let crate::record::GroupRecord { id, groups, options, grants, .. } = record;
            (Arc::clone(&name), Group { name, options, id, groups, grants })
        };
        let all = match records.all {
            None => OfAll::default(),
            Some(Ok(all)) => OfAll { sources: all.sources, grants: all.grants, is_unreadable: false },
            Some(Err(())) => OfAll { is_unreadable: true, ..OfAll::default() },
        };
        let (is_enabled, ciphers) = match records.status {
            None => (false, None),
            Some(Ok(status)) => (status.enabled, status.ciphers),
            Some(Err(())) => (true, None),
        };
        Self {
            is_enabled,
            ciphers,
            users: records.users.into_iter().map(user).collect(),
            groups: records.groups.into_iter().map(group).collect(),
            all,
        }
    }

    /// Whether clients have to prove who they are.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// The ciphers of TLS as they were given, with colons between their names; `None` if the node
    /// chooses them itself.
    pub fn ciphers(&self) -> Option<&str> {
        self.ciphers.as_deref()
    }

    /// The user of a name. Names are compared exactly.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// The group of a name. Names are compared exactly.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
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
        let mut users: Vec<&User> = self.users.values().collect();
        users.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        users
    }

    /// All groups, sorted by name.
    pub(crate) fn groups(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        groups
    }

    /// The sources of all users.
    pub(crate) fn sources_of_all(&self) -> &[Source] {
        &self.all.sources
    }
}
