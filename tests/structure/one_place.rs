//! Some questions are answered in one place: this test reads the sources of a crate and fails if
//! code outside of that place reads the field that answers the question ([`PLACES`]).
//!
//! It skips comments and unit tests.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// A field, and the modules of a crate that may read it.
struct Place {
    sources: &'static str,
    field: &'static str,
    modules: &'static [&'static str],
    why: &'static str,
}

/// `buckets` checks and compares all properties.
const PLACES: &[Place] = &[
    Place {
        sources: "crates/kv/src",
        field: "write_once",
        modules: &["buckets", "routing"],
        why: "ask `routing::Route` how the requests of a bucket are coordinated",
    },
    Place {
        sources: "crates/kv/src",
        field: "consistent",
        modules: &["buckets", "routing"],
        why: "ask `routing::Route` how the requests of a bucket are coordinated",
    },
];

/// Whether some code reads a field: `.field`, and no longer name that begins like it.
fn reads(text: &str, field: &str) -> bool {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let of_line = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        let dotted = format!(".{field}");
        code.match_indices(&dotted).any(|(at, found)| {
            let next = code[at + found.len()..].chars().next();
            !next.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '(')
        })
    };
    code.lines().any(of_line)
}

/// The files below a folder that read a field. Folders and files with unit tests are left out.
fn readers_below(folder: &Path, field: &str) -> Vec<PathBuf> {
    let mut readers = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let path = entry.unwrap().path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            readers.extend(readers_below(&path, field));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && reads(&fs::read_to_string(&path).unwrap(), field)
        {
            readers.push(path);
        }
    }
    readers
}

#[test]
fn questions_are_answered_in_one_place() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for Place { sources, field, modules, why } in PLACES {
        let folder = workspace.join(sources);
        let readers = readers_below(&folder, field);
        let is_allowed = |reader: &&PathBuf| modules.iter().any(|module| reader.starts_with(folder.join(module)));
        assert!(readers.iter().any(|reader| is_allowed(&reader)), "nobody reads {field}: is its place still there?");
        let others: Vec<_> = readers.iter().filter(|reader| !is_allowed(reader)).collect();
        assert!(others.is_empty(), "{others:?} read {field}: {why}");
    }
}

#[test]
fn the_reader_of_a_field_is_found() {
    assert!(reads("if props.write_once { f() }", "write_once"));
    assert!(reads("let a = props.write_once;", "write_once"));
    assert!(!reads("stats.write_once_put(took_us)", "write_once"));
    assert!(!reads("// props.write_once", "write_once"));
    assert!(!reads("fn f() {}\n#[cfg(test)]\nmod tests {\n props.write_once;\n}", "write_once"));
}
