//! Commands: what they refuse, what they do at the same time as others, and what strangers give
//! them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use ombak_security::bounds;
use ombak_security::console::{ConsoleError, RecordStore};
use std::time::{Duration, Instant};
use support::{MemoryStore, TestConsole};

/// Runs a command of somebody else when a change of `console` is about to be decided.
fn intrude(console: &TestConsole, before_change: usize, line: &'static str) {
    let number = console.store.changes.get() + before_change;
    let run = move |store: &MemoryStore| {
        let other = TestConsole::default();
        *other.store.records.borrow_mut() = store.records.borrow().clone();
        // Ids must differ from those of the first console.
        (0..100 * (number + 1))
            .for_each(|_| drop(ombak_security::console::World::random_bytes(&other.world, &mut [0; 8])));
        for command in line.split("; ") {
            other.ok(command);
        }
        *store.records.borrow_mut() = other.store.records.borrow().clone();
    };
    *console.store.intruder.borrow_mut() = Some((number, Box::new(run)));
}

#[test]
fn an_option_that_is_not_given_stays() {
    let console = TestConsole::default();
    console.ok("add-group g");
    console.ok("add-user alice password=secret groups=g Team=blue floor=3");
    console.ok("alter-user alice floor= Floor2=1");
    let roles = console.roles();
    let alice = roles.user("alice").unwrap();
    assert!(alice.password.as_ref().unwrap().matches(b"secret"));
    let options: Vec<String> = alice.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(options, ["floor=", "floor2=1", "team=blue"]);
    console.ok("alter-user ALICE password=other");
    let now = console.roles();
    assert_eq!(now.user("alice").unwrap().id, alice.id, "it is the same user");
    assert!(!now.user("alice").unwrap().password.as_ref().unwrap().matches(b"secret"));
    assert!(console.ok("print-user alice").text.contains("|       g       |"));
    console.ok("alter-user alice groups=");
    assert!(!console.ok("print-user alice").text.contains("|       g       |"));
}

#[test]
fn whoever_only_reads_changes_nothing_and_sees_no_hash() {
    let console = TestConsole::default();
    console.ok("add-user alice password=secret");
    let shown = console.ok("print-users").text;
    let is_hash = |word: &&str| word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = shown.split(['|', ' ']).find(is_hash).expect("Riak shows it to whoever administers").to_owned();
    let read = |words: &[&str]| {
        let arguments: Vec<String> = words[1..].iter().map(|&word| word.to_owned()).collect();
        ombak_security::console::read(&console.store, &console.world, words[0], &arguments)
    };
    for words in [
        &["status"][..],
        &["print-users"],
        &["print-user", "alice"],
        &["print-groups"],
        &["print-sources"],
        &["print-grants", "alice"],
    ] {
        let answer = read(words).unwrap();
        assert!(!answer.text.contains(&hash) && !answer.json.to_string().contains(&hash), "{words:?}");
    }
    assert!(read(&["print-user", "alice"]).unwrap().text.contains("(not shown)"));
    let before = console.store.changes.get();
    for words in [&["enable"][..], &["disable"], &["del-user", "alice"], &["ciphers", "X"], &["nonesuch"]] {
        assert!(read(words).is_err(), "{words:?}");
    }
    assert_eq!(console.store.changes.get(), before);
}

#[test]
fn a_user_that_was_added_again_is_another_one() {
    let console = TestConsole::default();
    console.ok("add-user alice");
    console.ok("grant riak_kv.get on any to alice");
    console.ok("add-source alice 10.0.0.0/8 trust");
    let before = console.roles().user("alice").unwrap().id;
    console.ok("del-user alice");
    console.ok("add-user alice");
    let roles = console.roles();
    assert_ne!(roles.user("alice").unwrap().id, before);
    assert!(!roles.grants_of("alice").permits_on_any("riak_kv.get"));
    assert!(roles.source_for("alice", "10.0.0.1".parse().unwrap()).is_none());
}

#[test]
fn a_group_that_was_added_again_has_no_members_whatever_ended_its_removal() {
    // Three members, so four changes: the removal is cut off after each of them.
    for changes in 0..=4 {
        let console = TestConsole::default();
        console.ok("add-group g");
        console.ok("grant riak_kv.get on any to g");
        for member in ["a", "b"] {
            console.ok(&format!("add-user {member} groups=g"));
        }
        console.ok("add-group sub groups=g");
        console.store.fails_after.set(Some(console.store.changes.get() + changes));
        assert_eq!(console.run(&["del-group", "g"]).is_ok(), changes == 4);
        console.store.fails_after.set(None);
        if changes < 4 {
            console.ok("del-group g");
        }
        console.ok("add-group g");
        console.ok("grant riak_kv.get on any to g");
        for member in ["a", "b"] {
            assert!(!console.roles().grants_of(member).permits_on_any("riak_kv.get"), "{changes} {member}");
        }
    }
}

#[test]
fn a_membership_that_races_with_the_removal_of_its_group_is_not_revived() {
    let console = TestConsole::default();
    console.ok("add-group g");
    console.ok("add-user alice");
    // While alice becomes a member, somebody else deletes the group and adds another one.
    intrude(&console, 0, "del-group g; add-group g; grant riak_kv.get on any to g");
    console.ok("alter-user alice groups=g");
    assert!(console.store.intruder.borrow().is_none(), "somebody else was first");
    assert!(!console.roles().grants_of("alice").permits_on_any("riak_kv.get"));
    assert!(!console.ok("print-user alice").text.contains(" g "), "nor is it shown");
    console.ok("alter-user alice groups=g");
    assert!(console.roles().grants_of("alice").permits_on_any("riak_kv.get"));
    // A removal that comes too late leaves the later group alone.
    intrude(&console, 1, "del-group g; add-group g; grant riak_kv.put on any to g");
    console.ok("del-group g");
    assert!(console.store.intruder.borrow().is_none());
    assert!(console.roles().group("g").is_some());
}

#[test]
fn two_commands_at_once_lose_no_change() {
    let console = TestConsole::default();
    console.ok("add-user alice");
    for (mine, other) in [
        ("grant riak_kv.get on default to alice", "grant riak_kv.put on default to alice"),
        ("grant riak_kv.get on any to all", "add-source all 10.0.0.0/8 password"),
        ("add-source alice 10.0.0.1/32 trust", "alter-user alice floor=3"),
        ("enable", "ciphers DHE-RSA-AES256-SHA256"),
    ] {
        intrude(&console, 0, other);
        console.ok(mine);
        assert!(console.store.intruder.borrow().is_none());
    }
    let roles = console.roles();
    let grants = roles.grants_of("alice");
    assert!(grants.permits("riak_kv.get", None, None) && grants.permits("riak_kv.put", None, None));
    assert!(grants.permits_on_any("riak_kv.get") && roles.is_enabled());
    assert_eq!((roles.user("alice").unwrap().options["floor"].as_str(), roles.ciphers().is_some()), ("3", true));
    let from = |address: &str| roles.source_for("alice", address.parse().unwrap()).unwrap().kind.name();
    assert_eq!((from("10.0.0.1"), from("10.0.0.2")), ("trust", "password"));

    // Both add the same user: the later one learns it.
    intrude(&console, 0, "add-user bob floor=1");
    assert_eq!(console.refused("add-user bob floor=2"), "This name is already in use");
    assert_eq!(console.roles().user("bob").unwrap().options["floor"], "1");
    // What is deleted meanwhile is not brought back.
    intrude(&console, 0, "del-user bob");
    assert_eq!(console.refused("grant riak_kv.get on any to bob"), "Name(s) not recognized: bob");
    intrude(&console, 0, "del-user alice");
    assert_eq!(console.refused("alter-user alice a=b"), "User not recognized: alice");
    assert!(console.roles().user("alice").is_none());
}

#[test]
fn several_errors_come_together_and_change_nothing() {
    let console = TestConsole::default();
    console.ok("add-user dup");
    console.ok("add-group dup");
    console.ok("add-user alice");
    let before = console.store.records();
    assert_eq!(
        console.refused("grant foo.bar,riak_kv.get on any to nosuch,dup,alice,NoSuch2"),
        "Name(s) not recognized: nosuch2, nosuch\n\
         Ambiguous names need to be prefixed with 'user/' or 'group/': dup\n\
         Permission not recognized: foo.bar"
    );
    assert_eq!(console.refused("grant riak_kv.get on any to all,alice"), "Name(s) not recognized: all");
    assert_eq!(console.refused("add-source alice,x,y 10.0.0.0/8 trust"), "User(s) not recognized: x, y");
    assert_eq!(console.refused("alter-user alice groups=x,dup,y"), "Group(s) not recognized: x, y");
    assert_eq!(console.refused("print-grants group/alice"), "Name not recognized: alice");
    assert_eq!(console.refused("add-group g password=x"), "A group has no password");
    assert_eq!(console.refused("frant riak_kv.get"), "Command not recognized: frant. Did you mean grant?");
    for line in ["add-user", "del-user", "status x", "print-users x", "grant", "revoke a on b to c", "add-source all"] {
        assert!(console.refused(line).starts_with("Usage: "), "{line}");
    }
    for words in [["grant", ",", "on", "any", "to", "alice"], ["grant", "riak_kv.get", "on", "any", "to", ","]] {
        assert!(console.run(&words).unwrap_err().to_string().starts_with("Usage: grant <permissions> on "));
    }
    assert_eq!(console.store.records(), before);
}

#[test]
fn a_hash_of_another_server_is_taken_over() {
    let console = TestConsole::default();
    let hash = "$pbkdf2-sha1$i=1$000102030405060708090a0b0c0d0e0f$";
    // Python: hashlib.pbkdf2_hmac("sha1", b"secret", bytes(range(16)), 1)
    let digits = "2a09e01fc191b19e999497717babe13fd158fb31";
    let answer = console.run(&["add-user", "alice", &format!("password-hash={hash}{digits}")]).unwrap();
    assert!(answer.text.contains(digits), "as Riak shows it");
    assert!(console.roles().user("alice").unwrap().password.as_ref().unwrap().matches(b"secret"));
    assert!(console.refused("alter-user alice password-hash=x").starts_with("Invalid password: a stored password is"));
    assert!(console.refused("alter-user alice password-hash=x password=y").starts_with("Give either"));
    assert!(console.refused("alter-user alice password=").starts_with("Invalid password: a password has 1 to"));
    let long = format!("password={}", "x".repeat(bounds::PASSWORD_BYTES_MAX + 1));
    assert!(console.run(&["alter-user", "alice", &long]).is_err());
}

#[test]
fn answers_for_programs_say_the_same_without_hashes() {
    let console = TestConsole::default();
    console.ok("add-group admins");
    console.ok("add-user alice password=secret groups=admins a=b");
    console.ok("grant riak_kv.get,riak_kv.put on default b to alice");
    console.ok("grant riak_kv.index on any to admins");
    console.ok("add-source alice 10.1.1.1/8 password");
    let user = &console.ok("print-users").json["users"][0];
    assert_eq!(user.to_string(), r#"{"name":"alice","groups":["admins"],"password":"argon2id","options":{"a":"b"}}"#);
    let grants = console.ok("print-grants alice").json.to_string();
    assert_eq!(
        grants,
        r#"{"roles":[{"role":"user/alice","inherited":[{"group":"admins","type":null,"bucket":null,"permissions":["riak_kv.index"]}],"dedicated":[{"type":"default","bucket":"b","permissions":["riak_kv.get","riak_kv.put"]}],"cumulative":[{"type":null,"bucket":null,"permissions":["riak_kv.index"]},{"type":"default","bucket":"b","permissions":["riak_kv.get","riak_kv.put"]}]}]}"#
    );
    let sources = console.ok("print-sources").json.to_string();
    assert_eq!(sources, r#"{"sources":[{"users":["alice"],"cidr":"10.0.0.0/8","source":"password","options":{}}]}"#);
    let status = console.ok("status").json.to_string();
    assert_eq!(status, r#"{"enabled":false,"users":1,"groups":1,"unreadable":[]}"#);
    let record = console.store.records.borrow()["user/alice"].clone();
    let salt_and_hash = record.split('$').skip(4).take(2);
    let commands = ["print-user alice", "print-users", "alter-user alice a=c", "print-grants alice", "print-sources"];
    for secret in salt_and_hash.map(|part| part.split('"').next().unwrap()) {
        for line in commands {
            assert!(!console.ok(line).json.to_string().contains(&secret[..8]), "{line}");
        }
    }
}

#[test]
fn a_damaged_record_can_be_replaced_and_one_of_a_later_version_cannot() {
    let console = TestConsole::default();
    let set =
        |key: &str, value: &str| drop(console.store.records.borrow_mut().insert(key.to_owned(), value.to_owned()));
    let later = r#"{"version":2}"#;
    for key in ["status", "all", "user/alice", "group/g"] {
        set(key, later);
    }
    assert_eq!(console.ok("status").text, "Enabled");
    assert_eq!(console.ok("status").json["unreadable"].as_array().unwrap().len(), 4);
    for line in [
        "disable",
        "add-source all 10.0.0.0/8 trust",
        "del-source all 10.0.0.0/8",
        "grant riak_kv.get on any to all",
        "alter-user alice a=b",
        "alter-group g a=b",
        "add-user alice",
        "add-group g",
        "del-source alice 10.0.0.0/8",
    ] {
        let why = console.refused(line);
        assert!(
            why.contains("a later version has written it") || why == "This name is already in use",
            "{line}: {why}"
        );
    }
    for key in ["status", "all"] {
        set(key, "{");
    }
    assert!(console.refused("grant riak_kv.get on any to all").contains("cannot be read"));
    console.ok("disable");
    console.ok("del-source all 10.0.0.0/8");
    console.ok("del-user alice");
    console.ok("del-group g");
    assert_eq!(console.ok("status").text, "Disabled");
    assert_eq!(console.ok("status").json["unreadable"].as_array().unwrap().len(), 0);
}

#[test]
fn strangers_names_break_neither_tables_nor_lines() {
    let console = TestConsole::default();
    for name in ["a\u{1b}[2J", "a\nb", "a\u{202e}b", "a|\u{7f}", "", " ", ".*", "(a+)+$", "%s", "a'b", "..\u{0}"] {
        let text = console.run(&["add-user", name]).unwrap_err().to_string();
        assert_eq!(text, "Illegal character(s) in name", "{name:?}");
    }
    for name in ["[a-z]", "^x{9}", "a.b", "a|b", "../../etc", "ユーザ", "emoji😀", "ÜBER", "user/x", "group/x"] {
        console.run(&["add-user", name]).unwrap();
        console.run(&["print-user", name]).unwrap();
    }
    assert!(console.roles().user("über").is_some() && console.roles().user("x").is_none());
    let escape = "\u{1b}]0;x\u{7}\nEnabled";
    console.run(&["add-user", "alice", &format!("a={escape}")]).unwrap();
    console.run(&["grant", "riak_kv.get", "on", escape, escape, "to", "alice"]).unwrap();
    let mut texts = vec![];
    for words in [vec!["print-users"], vec!["print-grants", "alice"]] {
        texts.push(console.run(&words).unwrap().text);
    }
    for words in [
        vec!["grant", escape, "on", "any", "to", escape],
        vec!["add-user", "x", escape],
        vec!["add-source", "all", escape, "trust"],
        vec!["add-source", "all", "10.0.0.0/8", escape],
        vec!["add-source", escape, "10.0.0.0/8", "trust"],
        vec!["print-user", escape],
        vec!["print-grants", escape],
        vec!["del-group", escape],
        vec!["ciphers", escape],
        vec![escape],
    ] {
        texts.push(console.run(&words).unwrap_err().to_string());
    }
    for text in texts {
        assert!(!text.contains('\u{1b}') && !text.lines().any(|line| line == "Enabled"), "{text:?}");
    }
}

#[test]
fn everything_is_bounded() {
    let console = TestConsole::default();
    let refused = |words: &[&str]| {
        let text = console.run(words).unwrap_err().to_string();
        assert!(text.len() < 1000, "{text}");
        text
    };
    console.ok("add-user alice");
    let long = "x".repeat(bounds::NAME_BYTES_MAX + 1);
    assert!(refused(&["add-user", &long]).contains("at most 256 bytes"));
    assert!(refused(&["add-user", "u", &format!("a={}", "x".repeat(1025))]).contains("at most 1024 bytes"));
    assert!(refused(&["add-user", "u", &format!("{}=a", "x".repeat(129))]).contains("1 to 128 bytes"));
    assert!(refused(&["alter-user", "alice", &"x".repeat(20_000)]).contains("16384 bytes"));
    let options: Vec<String> = (0..33).map(|number| format!("o{number}=1")).collect();
    let words: Vec<&str> = ["add-user", "u"].into_iter().chain(options.iter().map(String::as_str)).collect();
    assert!(refused(&words).contains("at most 32 options"));
    assert!(refused(&["add-user", "u"].repeat(60)).contains("at most 100 arguments"));
    assert!(refused(&["grant", "riak_kv.get", "on", &"t".repeat(1025), "to", "alice"]).contains("1024 bytes"));
    assert!(refused(&["grant", "riak_kv.get", "on", "any", "to", &"y,".repeat(8000)]).contains("Name(s) not"));
    for number in 0..bounds::SOURCES_MAX {
        console.ok(&format!("add-source alice 10.0.{}.{}/32 trust", number / 256, number % 256));
    }
    assert!(refused(&["add-source", "alice", "11.0.0.0/8", "trust"]).contains("at most 256 sources"));
    console.ok("add-source alice 10.0.0.0/32 password");
    for number in 0..bounds::GRANTS_MAX {
        console.ok(&format!("grant riak_kv.get on t{number} to alice"));
    }
    assert!(refused(&["grant", "riak_kv.get", "on", "any", "to", "alice"]).contains("at most 256 buckets"));
    // Many long names of buckets exceed the record before anything else.
    console.ok("add-user bob");
    let fills = |number: usize| {
        let (bucket_type, bucket) = (format!("{number}{}", "t".repeat(1000)), "b".repeat(1000));
        console.run(&["grant", "riak_kv.get", "on", &bucket_type, &bucket, "to", "bob"])
    };
    let ended = (0..bounds::GRANTS_MAX).find_map(|number| fills(number).err()).unwrap();
    assert!(ended.to_string().contains("and can have 65536"), "{ended}");
    let groups: Vec<String> = (0..=bounds::GROUPS_MAX).map(|number| format!("g{number}")).collect();
    for group in &groups {
        console.ok(&format!("add-group {group}"));
    }
    assert!(refused(&["alter-user", "alice", &format!("groups={}", groups.join(","))]).contains("at most 64 groups"));
}

#[test]
fn ten_thousand_groups_are_no_hardship() {
    let console = TestConsole::default();
    console.ok("add-group g0");
    console.ok("add-user alice");
    let record = console.store.records.borrow()["group/g0"].clone();
    let (before, after) = record.split_once("\"groups\":[]").unwrap();
    // Each group is a member of the next ones, in a circle.
    for number in 0..bounds::RECORDS_MAX - 3 {
        let above: Vec<String> = (1..=8)
            .map(|step| {
                format!("{{\"name\":\"g{}\",\"id\":\"0100000000000000\"}}", (number + step) % (bounds::RECORDS_MAX - 3))
            })
            .collect();
        let value = format!("{before}\"groups\":[{}]{after}", above.join(","));
        console.store.records.borrow_mut().insert(format!("group/g{number}"), value);
    }
    console.ok("grant riak_kv.get on any to g9000");
    console.ok("alter-user alice groups=g0");
    console.ok("enable");
    console.ok("add-source all 10.0.0.0/8 trust");
    assert_eq!(console.store.records().len(), bounds::RECORDS_MAX);
    assert!(console.refused("add-user one-more").contains("There can be at most 9998 users and groups"));
    let start = Instant::now();
    let roles = console.roles();
    assert!(roles.grants_of("alice").permits_on_any("riak_kv.get"), "nine thousand groups above");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(console.ok("print-groups").text.lines().count() > bounds::RECORDS_MAX);
}

#[test]
fn a_failure_of_the_metadata_is_passed_on() {
    let console = TestConsole::default();
    console.store.fails_after.set(Some(0));
    assert_eq!(console.run(&["enable"]), Err(ConsoleError::failed("the metadata have no majority".to_owned())));
}
