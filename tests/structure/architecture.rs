//! ARCHITECTURE.md is a map that one reads at once: it has at most [`MAP_BYTES_MAX`] bytes. It
//! links to every page of docs/architecture. Each page begins with a picture. The paths that the
//! map and all documents below docs name exist.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MAP: &str = "ARCHITECTURE.md";
const MAP_BYTES_MAX: usize = 12_288;

/// The folder of the pages, one for each subsystem.
const PAGES: &str = "docs/architecture";

/// The folder of all documents but those at the root.
const DOCUMENTS: &str = "docs";

/// How many lines may stand between the title of a page and its picture.
const LINES_BEFORE_PICTURE_MAX: usize = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The pages, as paths from the root of the repository.
fn pages() -> Vec<String> {
    let names = fs::read_dir(root().join(PAGES)).unwrap().map(|entry| entry.unwrap().file_name());
    let mut pages: Vec<String> = names.map(|name| format!("{PAGES}/{}", name.into_string().unwrap())).collect();
    pages.sort();
    assert!(!pages.is_empty(), "{PAGES} has no pages");
    pages
}

/// All documents in or below a folder, as paths from the root of the repository.
fn documents_below(folder: &str) -> Vec<String> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap());
        if root().join(&path).is_dir() {
            documents.extend(documents_below(&path));
        } else if Path::new(&path).extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
    documents.sort();
    documents
}

/// Whether a page begins with a title, and soon after it with a picture, which is a code block.
fn begins_with_picture(page: &str) -> bool {
    let mut lines = page.lines();
    let is_titled = lines.next().is_some_and(|line| line.starts_with("# "));
    is_titled && lines.take(LINES_BEFORE_PICTURE_MAX).any(|line| line.starts_with("```"))
}

/// The code spans of a document, outside of code blocks.
fn code_spans(document: &str) -> Vec<&str> {
    let mut is_block = false;
    let prose = document.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    prose.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// The names of the folders in a folder.
fn folders(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Whether a code span is a path below one of these folders.
fn is_path_below(span: &str, tops: &BTreeSet<String>) -> bool {
    let is_plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    is_plain && span.split_once('/').is_some_and(|(top, _)| tops.contains(top))
}

#[test]
fn the_map_is_small() {
    let bytes = read(MAP).len();
    assert!(bytes <= MAP_BYTES_MAX, "{MAP} has {bytes} bytes; move something to a page of {PAGES}");
}

#[test]
fn the_map_links_to_every_page() {
    let map = read(MAP);
    let missing: Vec<String> = pages().into_iter().filter(|page| !map.contains(&format!("({page})"))).collect();
    assert!(missing.is_empty(), "{MAP} has no link to {}", missing.join(", "));
}

#[test]
fn every_page_begins_with_a_picture() {
    let bare: Vec<String> = pages().into_iter().filter(|page| !begins_with_picture(&read(page))).collect();
    assert!(bare.is_empty(), "no code block soon after the title: {}", bare.join(", "));
}

#[test]
fn paths_that_documents_name_exist() {
    let (root, crates) = (root(), root().join("crates"));
    let (at_root, of_crates) = (folders(&root), folders(&crates));
    // A path that begins with the name of a crate lies below `crates`.
    let is_missing = |span: &str| match () {
        () if is_path_below(span, &of_crates) => !crates.join(span).exists(),
        () if is_path_below(span, &at_root) => !root.join(span).exists(),
        () => false,
    };
    let mut missing = Vec::new();
    for document in std::iter::once(MAP.to_owned()).chain(documents_below(DOCUMENTS)) {
        let text = read(&document);
        let lost = code_spans(&text).into_iter().filter(|span| is_missing(span));
        missing.extend(lost.map(|span| format!("{document}: {span}")));
    }
    assert!(missing.is_empty(), "these paths do not exist:\n{}", missing.join("\n"));
}

#[test]
fn a_page_without_a_picture_and_a_path_are_recognised() {
    let lines = "\n".repeat(LINES_BEFORE_PICTURE_MAX - 1);
    assert!(begins_with_picture(&format!("# Title\n{lines}```text\n")));
    for bare in [format!("# Title\n{lines}\n```text\n"), "# Title\n\nWords.\n".to_owned(), "```\n```\n".to_owned()] {
        assert!(!begins_with_picture(&bare), "{bare:?}");
    }
    assert_eq!(code_spans("a `b/c` d `e`\n```\n`not/this`\n```\n`f`"), ["b/c", "e", "f"]);
    let tops = BTreeSet::from(["kv".to_owned()]);
    assert!(is_path_below("kv/src/lib.rs", &tops));
    for other in ["kv", "api/src", "kv/*/tests", "kv/src at kv"] {
        assert!(!is_path_below(other, &tops), "{other:?}");
    }
}
