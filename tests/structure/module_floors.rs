//! Modules inside a crate point one way: this test reads the sources of the crates in [`CRATES`]
//! and fails on a path that leads from a top module to one that is not on a lower floor.
//!
//! It finds the paths that begin with `crate::`, and those that reach the root of the crate through
//! `super::`. It skips comments, `lib.rs`, and unit tests. A call of a method names no module, so
//! the test does not see it: a method passes even if its `impl` block is above its caller.
//!
//! `module_circles` does the same for the modules of one folder.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The sources of a crate, and its floors, the lowest first. Modules that share a floor may use
/// each other: together they are one story that is told in several modules.
struct Floors {
    sources: &'static str,
    floors: &'static [&'static [&'static str]],
}

/// The crates with floors.
const CRATES: &[Floors] = &[Floors {
    sources: "crates/kv/src",
    floors: &[
        // What every module may use.
        &["deliberate_faults"],
        &["digest"],
        &["names"],
        &["open_error"],
        &["requests"],
        &["slow"],
        &["hot"],
        // What buckets are, and who attaches to the engine.
        &["buckets"],
        &["hooks"],
        &["start"],
        &["routing"],
        // What decides, without I/O.
        &["coordination"],
        &["conditional"],
        // What a replica is asked, and how an engine is configured.
        &["replica"],
        &["config"],
        // What the classes of a partition hold, in sums.
        &["sums"],
        // Riak's trees over the same.
        &["kept_trees"],
        // One key of one store, and who follows the changes of all.
        &["partition"],
        &["feed"],
        // What requests need to know of copies elsewhere.
        &["reaping"],
        &["transfer"],
        // What is read although nobody asks for it.
        &["scrub"],
        // Which trees are kept.
        &["tree_keeping"],
        // The requests.
        &["engine"],
        // What works over the engine.
        &["folds"],
        &["coverage", "listing", "query"],
        &["interface"],
        // Faces for other crates.
        &["admin", "repair_host"],
        &["fuzzing"],
    ],
}];

/// A path in the code that leads to a module that is not below.
#[derive(Debug, PartialEq, Eq)]
struct Upward {
    from: String,
    to: String,
    file: PathBuf,
}

/// The code of a file without line comments and without the unit tests at its end.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The first name of a path.
fn first_name(path: &str) -> Option<String> {
    let name: String = path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() { None } else { Some(name) }
}

/// The first names of a path, or of all paths of a group in braces.
fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.trim_start().strip_prefix('{') else { return first_name(path).into_iter().collect() };
    let (mut names, mut depth, mut is_first) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        if is_first && !c.is_whitespace() && c != '}' {
            names.extend(first_name(&group[at..]));
            is_first = false;
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            _ => {}
        }
    }
    names
}

/// The names below the root of the crate that some code uses. `depth` is the number of modules
/// around the code, its file included.
fn names_below_root(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices("crate::") {
        let is_whole_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if is_whole_word {
            names.extend(first_names(&code[at + found.len()..]));
        }
    }
    let to_root = "super::".repeat(depth);
    for (at, found) in code.match_indices(&to_root) {
        let rest = &code[at + found.len()..];
        if !code[..at].ends_with("super::") && !rest.starts_with("super::") {
            names.extend(first_names(rest));
        }
    }
    names
}

/// All files with code below a folder. Folders and files with unit tests are left out.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.unwrap().path();
        let is_tests = path.file_stem().is_some_and(|stem| stem == "tests");
        match path.is_dir() {
            _ if is_tests => {}
            true => files.extend(files_below(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
    files.sort();
    files
}

/// The modules around the code of a file, from the top.
fn modules_of(file: &Path) -> Vec<String> {
    let mut modules: Vec<String> =
        file.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    modules.pop_if(|last| last == "mod");
    modules
}

/// The floor of each module.
fn heights(floors: &[&[&str]]) -> BTreeMap<String, usize> {
    let of_floor = |(height, modules): (usize, &&[&str])| {
        modules.iter().map(|module| ((*module).to_owned(), height)).collect::<Vec<_>>()
    };
    floors.iter().enumerate().flat_map(of_floor).collect()
}

/// The paths in the code of one file that do not lead downwards.
fn upward_paths(file: &Path, text: &str, heights: &BTreeMap<String, usize>) -> Vec<Upward> {
    let modules = modules_of(file);
    let from = &modules[0];
    let own = heights.get(from).unwrap_or_else(|| panic!("the module {from} has no floor: give it one in CRATES"));
    let used = names_below_root(&code_of(text), modules.len());
    let is_upward = |to: &String| heights.get(to).is_some_and(|height| height > own);
    let upward = used.into_iter().filter(is_upward);
    upward.map(|to| Upward { from: from.clone(), to, file: file.to_owned() }).collect()
}

#[test]
fn modules_use_lower_floors() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for Floors { sources, floors } in CRATES {
        let (folder, heights) = (workspace.join(sources), heights(floors));
        let mut upward = Vec::new();
        for path in files_below(&folder) {
            let file = path.strip_prefix(&folder).unwrap();
            if file != Path::new("lib.rs") {
                upward.extend(upward_paths(file, &fs::read_to_string(&path).unwrap(), &heights));
            }
        }
        assert!(upward.is_empty(), "these paths of {sources} lead upwards: {upward:#?}");
    }
}

#[test]
fn a_path_that_leads_upwards_is_found() {
    let heights = heights(&[&["ground"], &["middle", "beside"], &["roof"]]);
    let upward = |file: &str, code: &str| {
        let found = upward_paths(Path::new(file), code, &heights);
        found.into_iter().map(|path| path.to).collect::<Vec<_>>()
    };
    let code = "use crate::ground::A;\nuse crate::{roof::B, ground};\n// use crate::roof;\nuse crate::beside::C;\n";
    assert_eq!(upward("middle/a.rs", code), ["roof"]);
    assert_eq!(upward("middle.rs", "fn f() -> crate::roof::X {}"), ["roof"]);
    assert_eq!(upward("ground/mod.rs", "use super::middle::A;"), ["middle"]);
    assert_eq!(upward("ground/a.rs", "use super::super::{middle, roof::{A, middle}};"), ["middle", "roof"]);
    assert_eq!(upward("ground/a/b.rs", "use super::super::middle;"), [""; 0], "it is a module of `ground`");
    assert_eq!(upward("roof/a.rs", "use crate::{ground, middle};"), [""; 0]);
    assert_eq!(upward("ground/a.rs", "#[cfg(test)]\nmod tests {\n use crate::roof;\n}"), [""; 0]);
}
