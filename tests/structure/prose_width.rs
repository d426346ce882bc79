//! Prose has lines of at most 100 columns: comments of Rust sources, and the documents of the
//! project. What cannot be broken is left out: tables, code blocks, headings, and lines of one
//! word, one address or one code span.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

const COLUMNS_MAX: usize = 100;

/// Files and folders with documents.
const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs"];

/// Folders with Rust sources.
const SOURCES: &[&str] = &["crates", "tests", "fuzz"];

/// A line that is too long: its number, beginning with 1, and its columns.
type TooLong = (usize, usize);

/// The columns of a line if it is too long.
fn excess(line: &str) -> Option<usize> {
    Some(line.chars().count()).filter(|columns| *columns > COLUMNS_MAX)
}

/// Whether a line is one word, one address or one code span, perhaps as an entry of a list. Such a
/// line cannot be broken.
fn is_one_piece(prose: &str) -> bool {
    let prose = prose.trim().trim_start_matches(['*', '-']).trim();
    let mut is_code = false;
    !prose.chars().any(|c| {
        is_code ^= c == '`';
        c.is_whitespace() && !is_code
    })
}

/// The prose lines of a document that are too long.
fn too_long_in_document(text: &str) -> Vec<TooLong> {
    let mut fence: Option<&str> = None;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let begin = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| begin.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            _ => {}
        }
        let is_code = fence.is_some() || mark.is_some() || line.starts_with("    ") && !is_in_list(text, number);
        let is_table = begin.starts_with('|');
        let is_heading = begin.starts_with('#');
        if !is_code && !is_table && !is_heading && !is_one_piece(line) {
            found.extend(excess(line).map(|columns| (number, columns)));
        }
    }
    found
}

/// Whether the lines before a line that is indented are an entry of a list.
fn is_in_list(text: &str, number: usize) -> bool {
    let before: Vec<&str> = text.lines().take(number - 1).collect();
    let begins = before.iter().rev().find(|line| !line.starts_with(' ') && !line.is_empty());
    begins.is_some_and(|line| {
        let item = line.trim_start_matches(|c: char| c.is_ascii_digit());
        ["* ", "- ", ". "].iter().any(|mark| item.starts_with(mark))
    })
}

/// The comment that a line of Rust consists of.
fn comment_of(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim_start())
}

/// The lines of comments that are too long. Comments behind code are left out, as the formatter
/// breaks the code.
fn too_long_in_source(text: &str) -> Vec<TooLong> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(comment) = comment_of(line) else {
            is_code = false;
            continue;
        };
        if comment.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        if !is_code && !comment.starts_with('|') && !is_one_piece(comment) {
            found.extend(excess(line).map(|columns| (number, columns)));
        }
    }
    found
}

/// All files below a path with this ending.
fn files(path: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let is_built = path.file_name().is_some_and(|name| name == "target" || name == "node_modules");
        for entry in fs::read_dir(path).unwrap().filter(|_| !is_built) {
            files(&entry.unwrap().path(), ending, found);
        }
    } else if path.extension().is_some_and(|extension| extension == ending) {
        found.push(path.to_owned());
    }
}

/// The lines that are too long in the files below these paths, for people.
fn look(places: &[&str], ending: &str, too_long: fn(&str) -> Vec<TooLong>) -> Vec<String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    places.iter().for_each(|place| files(&workspace.join(place), ending, &mut paths));
    assert!(paths.len() >= places.len(), "files are missing below {places:?}");
    paths.sort();
    let mut lines = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&workspace).unwrap().display();
        let line = |(number, columns)| format!("{name}:{number}: {columns} columns");
        lines.extend(too_long(&text).into_iter().map(line));
    }
    lines
}

#[test]
fn documents_have_lines_of_at_most_100_columns() {
    let found = look(DOCUMENTS, "md", too_long_in_document);
    assert!(found.is_empty(), "break these lines:\n{}", found.join("\n"));
}

#[test]
fn comments_have_lines_of_at_most_100_columns() {
    let found = look(SOURCES, "rs", too_long_in_source);
    assert!(found.is_empty(), "break these lines:\n{}", found.join("\n"));
}

#[test]
fn long_lines_are_found_and_what_cannot_be_broken_is_left_out() {
    let (long, address) = ("word ".repeat(21), format!("<https://example.org/{}>", "a".repeat(90)));
    let document = format!(
        "{long}\n| {long}\n```\n{long}\n```\n{long}\n\n    {long}\n{address}\n## {long}\n\n* item\n\n    {long}\n* `{long}`.\n"
    );
    let numbers = |found: Vec<TooLong>| found.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(numbers(too_long_in_document(&document)), [1, 6, 14]);
    let source = format!(
        "//! {long}\nlet a = \"{long}\"; // {long}\n    /// {long}\n/// ```\n/// {long}\n/// ```\n// {address}\n// | {long}\n"
    );
    assert_eq!(numbers(too_long_in_source(&source)), [1, 3]);
    let exactly = format!("é {}", "é".repeat(COLUMNS_MAX - 2));
    assert!(too_long_in_document(&exactly).is_empty() && !too_long_in_document(&format!("{exactly}e")).is_empty());
}
