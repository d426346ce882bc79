//! Records that were written once are read for ever, and records that cannot be read close.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use ombak_security::{Roles, SourceKind, validate};
use proptest::prelude::*;
use std::net::IpAddr;
use support::TestConsole;

/// The records of version 1, frozen. They never change.
const FIXTURES: [(&str, &str); 4] = [
    ("status", include_str!("fixtures/version-2/status.json")),
    ("all", include_str!("fixtures/version-2/all.json")),
    ("user/alice", include_str!("fixtures/version-2/user.json")),
    ("group/admins", include_str!("fixtures/version-2/group.json")),
];

const HERE: &str = "127.0.0.1";

fn read(records: &[(&str, &str)]) -> (Roles, usize) {
    let records = records.iter().map(|(key, value)| (key.as_bytes(), value.trim_end()));
    let (roles, unreadable) = Roles::from_records(records);
    (roles, unreadable.len())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_records_of_version_1_are_read() {
    let (roles, unreadable) = read(&FIXTURES);
    assert_eq!(unreadable, 0);
    assert!(roles.is_enabled());
    assert_eq!(roles.ciphers(), Some("TLS_AES_256_GCM_SHA384:ECDHE-RSA-AES256-GCM-SHA384"));
    let alice = roles.user("alice").unwrap();
    assert_eq!((alice.id, alice.options["team"].as_str()), (0x0123_4567_89ab_cdef, "blue"));
    assert!(alice.password.as_ref().unwrap().matches(b"secret"));
    assert_eq!(roles.group("admins").unwrap().options["floor"], "3");
    assert_eq!(roles.source_for("alice", address(HERE)).unwrap().kind, SourceKind::Certificate);
    assert_eq!(roles.source_for("alice", address("fd00::9")).unwrap().kind, SourceKind::Password);
    assert_eq!(roles.source_for("alice", address("192.168.1.9")).unwrap().kind, SourceKind::Trust);
    let grants = roles.grants_of("alice");
    assert!(grants.permits("riak_kv.get", None, Some(b"b1")) && grants.permits("riak_kv.put", Some(b"maps"), None));
    assert!(grants.permits_on_any("riak_kv.list_keys") && !grants.permits("riak_kv.delete", None, Some(b"b1")));
}

/// What the commands write today are the frozen bytes.
#[test]
fn the_records_of_version_1_are_written() {
    let console = TestConsole::default();
    let records = || console.store.records.borrow().clone();
    console.ok("add-group admins floor=3");
    console.ok("grant riak_kv.put on maps to admins");
    let hash = FIXTURES[2].1.split('"').find(|part| part.starts_with("$pbkdf2")).unwrap();
    console.run(&["add-user", "alice", &format!("password-hash={hash}"), "groups=admins", "team=blue"]).unwrap();
    console.ok("add-source alice 127.0.0.1/32 certificate");
    console.ok("add-source alice fd00::/8 password");
    console.ok("grant riak_kv.get on default b1 to alice");
    console.ok("add-source all 192.168.1.0/24 trust note=lan");
    console.ok("grant riak_kv.list_keys on any to all");
    console.run(&["ciphers", "DHE-RSA-AES256-SHA256"]).unwrap();
    console.ok("enable");
    for (key, frozen) in FIXTURES {
        // Ids are random, and the suites of the test are others.
        let now = records()[key].replace("DHE-RSA-AES256-SHA256", "TLS_AES_256_GCM_SHA384:ECDHE-RSA-AES256-GCM-SHA384");
        let now = now.replace("0100000000000000", "fedcba9876543210").replace("0200000000000000", "0123456789abcdef");
        assert_eq!(now, frozen.trim_end(), "{key}");
    }
}

#[test]
fn a_record_that_cannot_be_read_closes() {
    let later = r#"{"version":2,"anything":[]}"#;
    for damage in [later, "", "{}", "[]", "{\"version\":1,", "\u{0}", r#"{"version":1,"unknown":1}"#] {
        let without = |broken: &str| {
            let records: Vec<_> =
                FIXTURES.iter().map(|(key, value)| (*key, if *key == broken { damage } else { *value })).collect();
            let (roles, unreadable) = read(&records);
            assert_eq!(unreadable, 1, "{damage}");
            roles
        };
        let roles = without("user/alice");
        assert!(roles.user("alice").is_none() && roles.source_for("alice", address(HERE)).is_none());
        assert!(!roles.grants_of("alice").permits_on_any("riak_kv.list_keys"), "not even what all may do");
        let roles = without("group/admins");
        assert!(roles.group("admins").is_none());
        assert!(!roles.grants_of("alice").permits("riak_kv.put", Some(b"maps"), None));
        // It might have had a stricter source than the one of the user.
        let roles = without("all");
        assert!(roles.source_for("alice", address(HERE)).is_none());
        assert!(!roles.grants_of("alice").permits_on_any("riak_kv.list_keys"));
        let roles = without("status");
        assert!(roles.is_enabled() && roles.ciphers().is_none());
        assert!(read(&[("status", damage)]).0.is_enabled());
    }
    assert!(!read(&[]).0.is_enabled());
    assert_eq!(read(&[("users/x", "{}"), ("user/ALICE", FIXTURES[2].1), ("user/all", FIXTURES[2].1)]).1, 3);
}

#[test]
fn a_membership_without_the_id_of_the_group_is_none() {
    let other = FIXTURES[3].1.replace("fedcba9876543210", "fedcba9876543211");
    let (roles, _) = read(&[FIXTURES[0], FIXTURES[1], FIXTURES[2], ("group/admins", &other)]);
    assert!(roles.group("admins").is_some());
    assert!(!roles.grants_of("alice").permits("riak_kv.put", Some(b"maps"), None));
}

#[test]
fn errors_have_no_part_of_a_record() {
    let (_, user) = FIXTURES[2];
    for damaged in [
        user.replace("$pbkdf2-sha1", "$pbkdf2-sha7"),
        user.replace("\"version\":1", "\"version\":\"$pbkdf2-sha1$\""),
        user.replace("\"password\"", "\"pbkdf2\""),
        user.replace("\"id\":\"", "\"id\":\"pbkdf2"),
    ] {
        let why = validate(b"user/alice", damaged.trim_end()).unwrap_err();
        assert!(!why.contains("pbkdf2"), "{why}");
        let (roles, unreadable) = Roles::from_records([(&b"user/alice\n"[..4], "x"), (b"user/alice", &damaged)]);
        let text = format!("{unreadable:?} {} {roles:?}", unreadable[1]);
        assert!(!text.contains("pbkdf2"), "{text}");
    }
    let (roles, _) = read(&FIXTURES);
    let hash = user.split('$').nth(4).unwrap().split('"').next().unwrap();
    assert!(!format!("{roles:?}").contains(&hash[..8]));
}

#[test]
fn what_exceeds_the_bounds_is_not_valid() {
    let (_, user) = FIXTURES[2];
    let user = user.trim_end();
    assert_eq!(validate(b"user/alice", user), Ok(()));
    let many = |what: &str, count: usize| vec![what.to_owned(); count].join(",");
    let sources: Vec<String> = (0..257)
        .map(|n| format!(r#"{{"cidr":"10.0.{}.{}/32","kind":"trust","options":{{}}}}"#, n / 256, n % 256))
        .collect();
    for (key, value) in [
        ("all", format!(r#"{{"version":1,"sources":[{}],"grants":[]}}"#, sources.join(","))),
        ("all", r#"{"version":1,"grants":[{"permissions":[]}]}"#.to_owned()),
        ("all", r#"{"version":1,"grants":[{"bucket":"b","permissions":["p"]}]}"#.to_owned()),
        ("all", r#"{"version":1,"grants":[{"type":"","permissions":["p"]}]}"#.to_owned()),
        ("all", format!(r#"{{"version":1,"grants":[{}]}}"#, many(r#"{"permissions":["p"]}"#, 2))),
        ("all", format!(r#"{{"version":1,"sources":[{}]}}"#, many(r#"{"cidr":"10.0.0.1/8","kind":"trust"}"#, 2))),
        ("all", r#"{"version":1,"sources":[{"cidr":"10.0.0.1/8","kind":"pam"}]}"#.to_owned()),
        ("all", format!(r#"{{"version":1,"grants":[{{"type":"{}","permissions":["p"]}}]}}"#, "x".repeat(1025))),
        ("status", format!(r#"{{"version":1,"enabled":true,"ciphers":"{}"}}"#, "x".repeat(8193))),
        ("status", format!(r#"{{"version":1,"enabled":true}}{}"#, " ".repeat(64 << 10))),
        ("group/g", format!(r#"{{"version":1,"id":"0123456789abcdef","options":{{"a":"{}"}}}}"#, "x".repeat(1025))),
        ("group/g", r#"{"version":1,"id":"0123456789abcdeg"}"#.to_owned()),
        ("group/g", r#"{"version":1,"id":"0123456789abcdef","password":"x"}"#.to_owned()),
        ("group/g", r#"{"version":0,"id":"0123456789abcdef"}"#.to_owned()),
        ("user/all", user.to_owned()),
        ("user/Alice", user.to_owned()),
        ("other", "{}".to_owned()),
    ] {
        assert!(validate(key.as_bytes(), &value).is_err(), "{key} {value}");
    }
}

proptest! {
    /// Any texts as keys and values do no harm, and give nobody anything that was not granted.
    #[test]
    fn any_records_do_no_harm(
        records in prop::collection::vec((prop_oneof![
            Just(b"status".to_vec()), Just(b"all".to_vec()), Just(b"user/alice".to_vec()),
            Just(b"group/admins".to_vec()), prop::collection::vec(any::<u8>(), 0..20),
        ], prop_oneof![".{0,200}", r#"[\[\]{}:,"$0-9a-z/.]{0,200}"#]), 0..8)
    ) {
        let (roles, _) = Roles::from_records(records.iter().map(|(key, value)| (&key[..], value.as_str())));
        prop_assert!(!roles.grants_of("alice").permits_on_any("riak_kv.get"));
        prop_assert!(roles.source_for("alice", address(HERE)).is_none());
        for (key, value) in &records {
            let _ = validate(key, value);
        }
    }

    /// Records with single bytes changed, cut off or repeated do no harm.
    #[test]
    fn damaged_records_do_no_harm(which in 0..4_usize, at in any::<prop::sample::Index>(), byte in 0..128_u8, cut in any::<bool>()) {
        let (key, value) = FIXTURES[which];
        let mut bytes = value.trim_end().as_bytes().to_vec();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let Ok(damaged) = String::from_utf8(bytes) else { return Ok(()) };
        let is_valid = validate(key.as_bytes(), &damaged).is_ok();
        let (roles, unreadable) = Roles::from_records([(key.as_bytes(), damaged.as_str())]);
        prop_assert_eq!(is_valid, unreadable.is_empty());
        let _ = (roles.grants_of("alice"), roles.source_for("alice", address(HERE)));
    }
}

/// A state that has followed all changes is the one that is read from the records as they are now.
#[test]
fn a_state_that_follows_changes_equals_one_that_is_read() {
    let later = r#"{"version":2}"#;
    let (user, group) = (FIXTURES[2].1, FIXTURES[3].1);
    let other_group = group.replace("fedcba9876543210", "fedcba9876543211");
    let changes: [(&str, Option<&str>); 14] = [
        ("user/alice", Some(user)),
        ("group/admins", Some(&other_group)),
        ("all", Some(FIXTURES[1].1)),
        ("status", Some(FIXTURES[0].1)),
        ("group/admins", Some(group)),
        ("all", Some(later)),
        ("all", None),
        ("status", Some(later)),
        ("group/admins", Some(later)),
        ("status", None),
        ("user/alice", Some("{}")),
        ("user/alice", Some(user)),
        ("all", Some(FIXTURES[1].1)),
        ("user/alice", None),
    ];
    let (mut roles, mut records) = (Roles::default(), std::collections::BTreeMap::new());
    for (key, value) in changes {
        let before = roles.clone();
        let shown = seen(&before);
        let changed = roles.change(key.as_bytes(), value.map(str::trim_end));
        assert_eq!(changed.is_ok(), value.is_none_or(|value| validate(key.as_bytes(), value.trim_end()).is_ok()));
        match value {
            Some(value) => drop(records.insert(key, value)),
            None => drop(records.remove(key)),
        }
        let records: Vec<_> = records.iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(seen(&roles), seen(&read(&records).0), "{key}");
        assert_eq!(seen(&before), shown, "the state before it has not changed");
        assert_eq!(
            roles.inherited_version() != before.inherited_version(),
            !key.starts_with("user/") && key != "status"
        );
    }
}

/// What the decisions of a state are, and what it says of itself.
fn seen(roles: &Roles) -> String {
    let (alice, grants) = (roles.user("alice"), roles.grants_of("alice"));
    let sources = [HERE, "fd00::9", "192.168.1.9"].map(|from| roles.source_for("alice", address(from)));
    let status = (roles.is_enabled(), roles.is_status_unreadable(), roles.ciphers());
    format!("{status:?} {alice:?} {:?} {sources:?} {grants:?}", roles.group("admins"))
}
