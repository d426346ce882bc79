//! Decisions equal those of a small model of Riak's rules, which shares no code with the crate,
//! after random histories of commands.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use support::TestConsole;

const USERS: [&str; 3] = ["u0", "u1", "both"];
const GROUPS: [&str; 4] = ["g0", "g1", "g2", "both"];
const PERMISSIONS: [&str; 3] = ["riak_kv.get", "riak_kv.put", "riak_core.get_bucket"];
const CIDRS: [&str; 9] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3/32",
    "10.1.2.3/16",
    "127.0.0.1/32",
    "::/0",
    "::1/128",
    "fd00::/8",
];
const ADDRESSES: [&str; 7] = ["10.1.2.3", "10.1.9.9", "10.9.9.9", "127.0.0.1", "::1", "fd00::5", "::ffff:10.1.2.3"];
const KINDS: [&str; 3] = ["trust", "password", "certificate"];
/// What grants are on: a type and a bucket.
const RESOURCES: [(&str, &str); 5] = [("", ""), ("default", ""), ("default", "a"), ("t", ""), ("t", "b")];

/// A history is written with indexes into the lists above.
#[derive(Clone, Debug)]
enum Step {
    AddUser(usize, Vec<usize>),
    AddGroup(usize, Vec<usize>),
    AlterUser(usize, Vec<usize>),
    AlterGroup(usize, Vec<usize>),
    DelUser(usize),
    DelGroup(usize),
    AddSource(Option<usize>, usize, usize),
    DelSource(Option<usize>, usize),
    Grant(Who, usize, usize),
    Revoke(Who, usize, usize),
}

#[derive(Clone, Copy, Debug)]
enum Who {
    All,
    User(usize),
    Group(usize),
    /// The name that a user and a group can have, without a prefix.
    Both,
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS.len();
    let group = || 0..GROUPS.len();
    let groups = || prop::collection::vec(0..GROUPS.len(), 0..3);
    let who = || {
        prop_oneof![
            Just(Who::All),
            (0..USERS.len()).prop_map(Who::User),
            (0..GROUPS.len()).prop_map(Who::Group),
            Just(Who::Both)
        ]
    };
    let of_all = || prop::option::of(0..USERS.len());
    prop_oneof![
        3 => (user(), groups()).prop_map(|(user, groups)| Step::AddUser(user, groups)),
        3 => (group(), groups()).prop_map(|(group, groups)| Step::AddGroup(group, groups)),
        2 => (user(), groups()).prop_map(|(user, groups)| Step::AlterUser(user, groups)),
        2 => (group(), groups()).prop_map(|(group, groups)| Step::AlterGroup(group, groups)),
        1 => user().prop_map(Step::DelUser),
        1 => group().prop_map(Step::DelGroup),
        4 => (of_all(), 0..CIDRS.len(), 0..KINDS.len()).prop_map(|(who, cidr, kind)| Step::AddSource(who, cidr, kind)),
        1 => (of_all(), 0..CIDRS.len()).prop_map(|(who, cidr)| Step::DelSource(who, cidr)),
        5 => (who(), 0..RESOURCES.len(), 0..PERMISSIONS.len()).prop_map(|(who, on, what)| Step::Grant(who, on, what)),
        2 => (who(), 0..RESOURCES.len(), 0..PERMISSIONS.len()).prop_map(|(who, on, what)| Step::Revoke(who, on, what)),
    ]
}

/// Riak's tables, more or less as Riak has them.
#[derive(Default)]
struct Model {
    /// Members and their groups: `user/u` or `group/g`.
    roles: BTreeMap<String, BTreeSet<String>>,
    /// User or all, bits of the prefix as a text of zeros and ones, kind.
    sources: BTreeMap<(String, String), &'static str>,
    /// Role, type, bucket, permission.
    grants: BTreeSet<(String, &'static str, &'static str, &'static str)>,
}

fn bits_of(address: &str) -> String {
    match address.parse::<IpAddr>().unwrap() {
        IpAddr::V4(v4) => "4".to_owned() + &v4.octets().map(|octet| format!("{octet:08b}")).concat(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => bits_of(&v4.to_string()),
            None => "6".to_owned() + &v6.octets().map(|octet| format!("{octet:08b}")).concat(),
        },
    }
}

fn prefix_of(cidr: &str) -> String {
    let (address, bits) = cidr.split_once('/').unwrap();
    bits_of(address)[..=bits.parse::<usize>().unwrap()].to_owned()
}

fn user(index: usize) -> String {
    format!("user/{}", USERS[index])
}

fn group(index: usize) -> String {
    format!("group/{}", GROUPS[index])
}

impl Model {
    /// Carries a step out. Returns the words of its command, and whether it succeeds.
    fn apply(&mut self, step: &Step) -> (Vec<String>, bool) {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        match step {
            Step::AddUser(name, groups) => {
                let (option, known) = self.groups(groups);
                let ok = known.is_some() && !self.roles.contains_key(&user(*name));
                if let (true, Some(groups)) = (ok, known) {
                    self.roles.insert(user(*name), groups);
                }
                (words(&["add-user", USERS[*name], &option]), ok)
            }
            Step::AddGroup(name, groups) => {
                let (option, known) = self.groups(groups);
                let ok = known.is_some() && !self.roles.contains_key(&group(*name));
                if let (true, Some(groups)) = (ok, known) {
                    self.roles.insert(group(*name), groups);
                }
                (words(&["add-group", GROUPS[*name], &option]), ok)
            }
            Step::AlterUser(name, groups) => self.alter("alter-user", USERS[*name], &user(*name), groups),
            Step::AlterGroup(name, groups) => self.alter("alter-group", GROUPS[*name], &group(*name), groups),
            Step::DelUser(name) => {
                let ok = self.delete(&user(*name));
                self.sources.retain(|(who, _), _| *who != user(*name));
                (words(&["del-user", USERS[*name]]), ok)
            }
            Step::DelGroup(name) => (words(&["del-group", GROUPS[*name]]), self.delete(&group(*name))),
            Step::AddSource(who, cidr, kind) => {
                let role = who.map_or("all".to_owned(), user);
                let ok = role == "all" || self.roles.contains_key(&role);
                if ok {
                    self.sources.insert((role, prefix_of(CIDRS[*cidr])), KINDS[*kind]);
                }
                (words(&["add-source", who.map_or("all", |who| USERS[who]), CIDRS[*cidr], KINDS[*kind]]), ok)
            }
            Step::DelSource(who, cidr) => {
                self.sources.remove(&(who.map_or("all".to_owned(), user), prefix_of(CIDRS[*cidr])));
                (words(&["del-source", who.map_or("all", |who| USERS[who]), CIDRS[*cidr]]), true)
            }
            Step::Grant(who, on, what) => self.change("grant", "to", *who, *on, *what),
            Step::Revoke(who, on, what) => self.change("revoke", "from", *who, *on, *what),
        }
    }

    fn groups(&self, indexes: &[usize]) -> (String, Option<BTreeSet<String>>) {
        let names: Vec<&str> = indexes.iter().map(|index| GROUPS[*index]).collect();
        let groups: BTreeSet<String> = indexes.iter().map(|index| group(*index)).collect();
        let known = groups.iter().all(|group| self.roles.contains_key(group));
        (format!("groups={}", names.join(",")), known.then_some(groups))
    }

    fn alter(&mut self, command: &str, name: &str, role: &str, groups: &[usize]) -> (Vec<String>, bool) {
        let (option, known) = self.groups(groups);
        let ok = known.is_some() && self.roles.contains_key(role);
        if let (true, Some(groups)) = (ok, known) {
            self.roles.insert(role.to_owned(), groups);
        }
        (vec![command.to_owned(), name.to_owned(), option], ok)
    }

    fn delete(&mut self, role: &str) -> bool {
        self.grants.retain(|(who, ..)| who != role);
        for groups in self.roles.values_mut() {
            groups.remove(role);
        }
        self.roles.remove(role).is_some()
    }

    fn change(&mut self, command: &str, word: &str, who: Who, on: usize, what: usize) -> (Vec<String>, bool) {
        let (bucket_type, bucket) = RESOURCES[on];
        let (name, roles) = match who {
            Who::All => ("all".to_owned(), vec!["all".to_owned()]),
            Who::User(index) => (user(index), vec![user(index)]),
            Who::Group(index) => (group(index), vec![group(index)]),
            Who::Both => ("both".to_owned(), vec!["user/both".to_owned(), "group/both".to_owned()]),
        };
        let known: Vec<&String> =
            roles.iter().filter(|role| *role == "all" || self.roles.contains_key(*role)).collect();
        let ok = known.len() == 1;
        if ok {
            let entry = (known[0].clone(), bucket_type, bucket, PERMISSIONS[what]);
            if command == "grant" {
                self.grants.insert(entry)
            } else {
                self.grants.remove(&entry)
            };
        }
        let mut words = vec![command, PERMISSIONS[what], "on"];
        words.push(if bucket_type.is_empty() { "any" } else { bucket_type });
        words.extend((!bucket.is_empty()).then_some(bucket));
        words.extend([word, &name]);
        (words.into_iter().map(str::to_owned).collect(), ok)
    }

    /// The first source that has the address: longest prefix first, and all users last.
    fn source(&self, user: &str, address: &str) -> Option<&'static str> {
        self.roles.get(user)?;
        let mut sorted: Vec<_> = self.sources.iter().collect();
        sorted.sort_by_key(|((who, prefix), _)| (usize::MAX - prefix.len(), who == "all"));
        let found = sorted
            .into_iter()
            .find(|((who, prefix), _)| (who == user || who == "all") && bits_of(address).starts_with(prefix.as_str()));
        found.map(|(_, kind)| *kind)
    }

    /// A user and everything above it, and all. The closure is computed until nothing is added.
    fn permits(&self, user: &str, permission: &str, bucket_type: &str, bucket: &str) -> bool {
        if !self.roles.contains_key(user) {
            return false;
        }
        let mut above = BTreeSet::from([user.to_owned(), "all".to_owned()]);
        loop {
            let more: BTreeSet<String> =
                above.iter().filter_map(|role| self.roles.get(role)).flatten().cloned().collect();
            if more.is_subset(&above) {
                break;
            }
            above.extend(more);
        }
        self.grants.iter().any(|(role, on_type, on_bucket, what)| {
            let reaches =
                on_type.is_empty() || *on_type == bucket_type && (on_bucket.is_empty() || *on_bucket == bucket);
            above.contains(role) && *what == permission && reaches
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn decisions_equal_those_of_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let (console, mut model) = (TestConsole::default(), Model::default());
        for step in &steps {
            let (words, succeeds) = model.apply(step);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let result = console.run(&words);
            prop_assert_eq!(result.is_ok(), succeeds, "{:?} {:?}", words, result);
        }
        let roles = console.roles();
        for name in USERS {
            let role = format!("user/{name}");
            for address in ADDRESSES {
                let found = roles.source_for(name, address.parse().unwrap()).map(|source| source.kind.name());
                prop_assert_eq!(found, model.source(&role, address), "{} {}", name, address);
            }
            let grants = roles.grants_of(name);
            for permission in PERMISSIONS {
                for (bucket_type, bucket) in [("default", ""), ("default", "a"), ("default", "z"), ("t", ""), ("t", "b")] {
                    let (t, b) = (bucket_type.as_bytes(), bucket.as_bytes());
                    let found = grants.permits(permission, Some(t), (!bucket.is_empty()).then_some(b));
                    let expected = model.permits(&role, permission, bucket_type, bucket);
                    prop_assert_eq!(found, expected, "{} {} {} {}", name, permission, bucket_type, bucket);
                    if bucket_type == "default" {
                        prop_assert_eq!(grants.permits(permission, None, (!bucket.is_empty()).then_some(b)), expected);
                    }
                }
                prop_assert_eq!(grants.permits_on_any(permission), model.permits(&role, permission, "", ""));
            }
        }
    }
}
