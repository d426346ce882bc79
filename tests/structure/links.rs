//! Links between the documents of the project lead somewhere: every relative link points to a file
//! or folder that exists, and every `#anchor` to a heading of its document.
//!
//! Code blocks are left out, and so are links to other hosts.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Files and folders with documents.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benches",
    "crates",
    "deploy",
    "docs",
    "fuzz",
    "tests",
];

/// The documents by their paths from the root of the repository.
type Documents = BTreeMap<PathBuf, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads all documents at or below a path from the root.
fn read_below(path: &Path, documents: &mut Documents) {
    let place = root().join(path);
    if place.is_dir() {
        let name = path.file_name().unwrap().to_string_lossy();
        let is_left_out = name.starts_with('.') || name == "target" || name == "node_modules";
        for entry in fs::read_dir(place).unwrap().filter(|_| !is_left_out) {
            read_below(&path.join(entry.unwrap().file_name()), documents);
        }
    } else if path.extension().is_some_and(|extension| extension == "md") {
        documents.insert(path.to_owned(), fs::read_to_string(place).unwrap());
    }
}

/// The lines outside of code blocks, with their numbers, beginning with 1.
fn prose(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_block = false;
    (1..).zip(document.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    })
}

/// The targets of the links in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.split(' ').next().unwrap_or_default())
}

/// Whether a target is a link to another host, such as `https://example.org`.
fn is_foreign(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphabetic()))
}

/// The anchor of a heading without its marks. A link in the heading counts with its text.
fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, target)) = rest.split_once("](") {
        text.push_str(before);
        rest = target.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The anchors of a document. Those of equal headings have numbers.
fn anchors(document: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(document) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let first = anchor(heading);
        let mut name = first.clone();
        for number in 1.. {
            if found.insert(name) {
                break;
            }
            name = format!("{first}-{number}");
        }
    }
    found
}

/// A path without `.` and `..`. Returns `None` if it leaves the repository.
fn plain_path(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir if plain.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(plain)
}

/// Whether a link in the document at `path` leads somewhere.
fn leads_somewhere(path: &Path, target: &str, documents: &Documents, exists: impl Fn(&Path) -> bool) -> bool {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = if file.is_empty() { Some(path.to_owned()) } else { plain_path(&folder.join(file)) };
    file.is_some_and(|file| match anchor {
        None => exists(&file),
        Some(anchor) => documents.get(&file).is_some_and(|document| anchors(document).contains(anchor)),
    })
}

/// The links that lead nowhere, for people.
fn lost_links(documents: &Documents, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut lost = Vec::new();
    for (path, document) in documents {
        for (number, line) in prose(document) {
            let links = targets(line).filter(|target| !is_foreign(target));
            let lost_here = links.filter(|target| !leads_somewhere(path, target, documents, &exists));
            lost.extend(lost_here.map(|target| format!("{}:{number}: {target}", path.display())));
        }
    }
    lost
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = Documents::new();
    DOCUMENTS.iter().for_each(|place| read_below(Path::new(place), &mut documents));
    assert!(documents.len() > DOCUMENTS.len(), "documents are missing below {DOCUMENTS:?}");
    let lost = lost_links(&documents, |path| root().join(path).exists());
    assert!(lost.is_empty(), "these links lead nowhere:\n{}", lost.join("\n"));
}

#[test]
fn lost_links_are_found_and_others_are_not() {
    let page = "# A [page](b.md), `of_its` own — new\n## Twice\n## Twice\n```\n# block\n[x](not-checked)\n```\n";
    let good = "[a](b.md) [b](b.md#twice-1) and [c](../top.md) [d](https://example.org/x#y) [e](#here) [f](../docs)\n";
    let bad = "[a](c.md) [b](b.md#thrice) [c](../../top.md) [d](#there)\n\n[e](b.md#block) [f](x.rs#L1)\n";
    let documents = Documents::from([
        (PathBuf::from("docs/a.md"), format!("# Here\n{good}{bad}")),
        (PathBuf::from("docs/b.md"), page.to_owned()),
        (PathBuf::from("top.md"), String::new()),
    ]);
    let exists = |path: &Path| documents.contains_key(path) || path == Path::new("docs");
    let lost = ["3: c.md", "3: b.md#thrice", "3: ../../top.md", "3: #there", "5: b.md#block", "5: x.rs#L1"];
    assert_eq!(lost_links(&documents, exists), lost.map(|link| format!("docs/a.md:{link}")));
    let expected = ["a-page-of_its-own--new", "twice", "twice-1"];
    assert_eq!(anchors(page), expected.map(String::from).into());
}
