//! The rooms of `crates/cluster/src/member` use each other in one direction: this test reads their
//! sources and fails on an arrow that is not listed in [`ROOMS`]. docs/architecture/member.md draws
//! the rooms.
//!
//! It finds the paths that begin with `crate::member::`, which is how a room names another one. It
//! skips comments and unit tests, and does not see the fields of `Inner`. What is not a room, such
//! as the start of a member, joins the rooms and may use all of them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every room, and the modules of `member` that it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("questions", &[]),
    ("directory_age", &["questions", "features"]),
    ("following", &["questions", "ground", "seeds"]),
    ("ring_change", &["questions", "ground", "following", "error"]),
    ("joining", &["questions", "ground", "following", "ring_change", "seeds", "error", "member_node"]),
    ("admin", &["questions", "ground", "ring_change", "joining", "features", "error", "member_node"]),
];

/// How a room names another one.
const PREFIX: &str = "crate::member::";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/cluster/src/member")
}

/// The code of a file without line comments and without the unit tests at its end.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The modules that some code names after [`PREFIX`].
fn used_in(code: &str) -> BTreeSet<String> {
    let name = |path: &str| path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let after = code.match_indices(PREFIX).map(|(at, _)| name(&code[at + PREFIX.len()..]));
    after.filter(|name| !name.is_empty() && name.starts_with(char::is_lowercase)).collect()
}

/// The modules that a room uses, with the file that uses each.
fn uses_of(room: &str) -> BTreeSet<(String, String)> {
    let mut uses = BTreeSet::new();
    for entry in fs::read_dir(folder().join(room)).expect("the room exists") {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(file.ends_with(".rs"), "{room}/{file}: a room has no rooms inside");
        let code = code_of(&fs::read_to_string(&path).unwrap());
        assert!(!code.contains("super::super::"), "{room}/{file} leaves its room by super::super");
        assert!(!code.contains("crate::member::{"), "{room}/{file} names several rooms in one path");
        uses.extend(used_in(&code).into_iter().filter(|used| used != room).map(|used| (file.clone(), used)));
    }
    uses
}

#[test]
fn every_room_is_listed() {
    let rooms = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let names = rooms.map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    let present: BTreeSet<String> = names.filter(|name| name != "tests").collect();
    let listed: BTreeSet<String> = ROOMS.iter().map(|(room, _)| (*room).to_owned()).collect();
    assert_eq!(present, listed, "the rooms (left) and the list in this file (right) differ");
}

#[test]
fn rooms_use_only_what_the_list_allows() {
    let mut forbidden = Vec::new();
    for (room, allowed) in ROOMS {
        for (file, used) in uses_of(room) {
            if !allowed.contains(&used.as_str()) {
                forbidden.push(format!("{room}/{file} -> {used}"));
            }
        }
    }
    assert!(forbidden.is_empty(), "arrows that the list does not allow: {}", forbidden.join(", "));
}

#[test]
fn rooms_use_only_rooms_before_them() {
    for (index, (room, allowed)) in ROOMS.iter().enumerate() {
        let later = ROOMS[index..].iter().filter(|(later, _)| allowed.contains(later));
        assert_eq!(later.count(), 0, "{room} may use a room that the list names only later");
    }
}

#[test]
fn an_arrow_is_found() {
    let code =
        code_of("use crate::member::admin::facts::X; // crate::member::no::Y\nlet x = crate::member::joining::z();");
    let found: Vec<String> = used_in(&code).into_iter().collect();
    assert_eq!(found, ["admin", "joining"]);
}
