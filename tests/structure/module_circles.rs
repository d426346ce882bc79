//! Modules of a folder use each other in one direction: this test reads the sources of the folders
//! in [`FOLDERS`] and fails if their modules form a circle.
//!
//! It finds the paths that begin with `super::`, which is how modules of one folder name each
//! other. It skips comments, unit tests, and the `mod.rs` that declares the modules.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders whose modules may not form a circle.
const FOLDERS: &[&str] = &["crates/api/src/pb"];

/// Module → the modules of its folder that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The code of a file without line comments and without the unit tests at its end.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names that follow `super::` in some code: one, or all of a group in braces.
fn names_after_super(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices("super::") {
        let rest = &code[at + found.len()..];
        // `super::super::` leads to another folder.
        if code[..at].ends_with("super::") || rest.starts_with("super::") {
            continue;
        }
        match rest.strip_prefix('{') {
            Some(group) => names.extend(first_names_of_group(group)),
            None => names.extend(first_name(rest)),
        }
    }
    names
}

/// The first name of a path.
fn first_name(path: &str) -> Option<String> {
    let name: String = path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() { None } else { Some(name) }
}

/// The first names of the paths in a group, up to its closing brace.
fn first_names_of_group(group: &str) -> Vec<String> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.extend(first_name(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.extend(first_name(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

/// Reads the modules of a folder.
fn uses_of(folder: &Path) -> Uses {
    let mut texts = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "rs") && name != "mod" {
            texts.insert(name, code_of(&fs::read_to_string(&path).unwrap()));
        }
    }
    let modules: BTreeSet<String> = texts.keys().cloned().collect();
    let used = |name: &String, text: &str| {
        let names = names_after_super(text);
        names.into_iter().filter(|used| modules.contains(used) && used != name).collect()
    };
    texts.iter().map(|(name, text)| (name.clone(), used(name, text))).collect()
}

/// The modules that are left when those that use nothing that is left are taken away again and
/// again. They form a circle, or use one.
fn circle(mut uses: Uses) -> BTreeSet<String> {
    loop {
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.retain(|_, used| used.iter().any(|name| left.contains(name)));
        if uses.len() == left.len() {
            return left;
        }
    }
}

#[test]
fn modules_form_no_circle() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in FOLDERS {
        let uses = uses_of(&workspace.join(folder));
        assert!(uses.values().any(|used| !used.is_empty()), "{folder} has modules that use each other");
        let circle = circle(uses);
        assert!(circle.is_empty(), "these modules of {folder} form a circle or use one: {circle:?}");
    }
}

#[test]
fn a_circle_is_found() {
    let code = "use super::b::B;\n// use super::no;\nuse super::{c, d::{x, y}, e as other};\nuse super::super::no;\n";
    let names: Vec<String> = names_after_super(&code_of(code)).into_iter().collect();
    assert_eq!(names, ["b", "c", "d", "e"]);
    let uses = |edges: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (from, to) in edges {
            uses.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            uses.entry((*to).to_owned()).or_default();
        }
        uses
    };
    assert!(circle(uses(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    assert_eq!(circle(uses(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])).len(), 3);
}
