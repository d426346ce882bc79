//! docs/compatibility.md has a table of the scenarios of Riak's own tests. This test checks that
//! the table has every scenario of the groups kv_all, core_all, admin_all, 2i_all, mapred_all,
//! pipe_all, datatypes_all, yoko, cluster_upgrade and smoke, that a scenario which counts as tested
//! names a test under its own name, that every test which the table names exists, and that those in
//! Python are run.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const HEADING: &str = "## Scenarios of Riak's own tests";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The lines of a document from one heading to the next one of any level.
fn section<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let section: Vec<_> = lines.take_while(|line| !line.starts_with("## ") && !line.starts_with("### ")).collect();
    assert!(!section.is_empty(), "no section {heading:?}");
    section
}

/// The cells of the rows of a table, without its head.
fn rows<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let rows = lines.iter().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    rows.skip(1).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Names that are separated by commas. One that begins with `_` continues the first one.
fn names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // What follows a name says for which versions or backends it is.
    let parts = text.split(',').map(|part| part.trim().trim_start_matches("(2.x) "));
    for part in parts.map(|part| part.split(['[', '(']).next().unwrap().trim()).filter(|part| !part.is_empty()) {
        let first = names.first().cloned().unwrap_or_default();
        names.push(if part.starts_with('_') { first + part } else { part.to_owned() });
    }
    names
}

/// A text without what is in parentheses.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0;
    let is_outside = |character: &char| match character {
        '(' => {
            depth += 1;
            false
        }
        ')' => {
            depth -= 1;
            false
        }
        _ => depth == 0,
    };
    text.chars().filter(is_outside).collect()
}

/// The scenarios of the groups.
fn scenarios() -> BTreeSet<String> {
    let text = read("docs/riak/riak-test.md");
    let mut found = BTreeSet::new();
    for heading in [
        "## 1. kv_all",
        "## 2. 2i_all",
        "## 4. mapred_all",
        "## 5. pipe_all",
        "## 6. core_all",
        "## 8. datatypes_all",
        "## 11. admin_all",
        "## 14. yoko",
    ] {
        // The head of these tables ends in `|---|`, which is no row.
        let rows = rows(&section(&text, heading));
        found.extend(rows.iter().flat_map(|row| names(row[0])));
    }
    let smoke = section(&text, "## 17. smoke").join(" ");
    let smoke = smoke.trim().strip_prefix("smoke:").expect("the list of smoke").split('.').next().unwrap();
    found.extend(names(smoke));
    let upgrade = without_parentheses(&section(&text, "## 16. cluster_upgrade").join(" "));
    found.extend(names(&upgrade.trim().trim_end_matches('.').replace(" / ", ", ")));
    found
}

/// One row of the table: its scenarios, the tests with their files, and the state.
struct Row {
    scenarios: Vec<String>,
    tests: Vec<(String, String)>,
    state: String,
}

fn table() -> Vec<Row> {
    let text = read("docs/compatibility.md");
    let rows = rows(&section(&text, HEADING));
    rows.into_iter()
        .map(|cells| {
            let [scenario, tests, state] = cells[..] else { panic!("a row has three cells: {cells:?}") };
            let quoted: Vec<_> = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            assert!(quoted.len() % 2 == 0, "tests are `name` in `file`: {tests}");
            let tests = quoted.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
            Row { scenarios: names(scenario), tests, state: state.to_owned() }
        })
        .collect()
}

#[test]
fn every_scenario_has_one_row() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in table().into_iter().flat_map(|row| row.scenarios) {
        *counts.entry(name).or_default() += 1;
    }
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "these have several rows: {twice:?}");
    let all = scenarios();
    assert!(all.len() > 130, "only {} scenarios were found", all.len());
    let missing: Vec<_> = all.iter().filter(|name| !counts.contains_key(*name)).collect();
    assert!(missing.is_empty(), "these have no row: {missing:?}");
}

#[test]
fn every_state_says_what_it_has_to() {
    for Row { scenarios, tests, state } in table() {
        if state == "tested" || state.starts_with("tested; ") {
            let is_own = |name: &String| scenarios.iter().any(|scenario| name.starts_with(scenario));
            assert!(tests.iter().any(|(name, _)| is_own(name)), "{scenarios:?} has no test under its name");
        } else {
            let gives_reason = |word: &str| state.strip_prefix(word).is_some_and(|reason| !reason.is_empty());
            let is_known = ["later: ", "not applicable: ", "not yet: "].into_iter().any(gives_reason);
            assert!(is_known, "{scenarios:?} has the state {state:?}");
        }
    }
}

#[test]
fn every_test_that_is_named_exists() {
    for (name, path) in table().into_iter().flat_map(|row| row.tests) {
        let text = read(&path);
        let is_there = ["fn ", "def "].iter().any(|word| text.contains(&format!("{word}{name}(")));
        assert!(is_there, "{path} has no test {name}");
    }
}

/// `tests/scenarios/run.py` names the scenarios that it runs.
#[test]
fn every_scenario_of_real_processes_is_run() {
    let run = read("tests/scenarios/run.py");
    for (name, path) in table().into_iter().flat_map(|row| row.tests) {
        if path.starts_with("tests/scenarios/") {
            assert!(run.contains(&format!("\"{name}\"")), "{path} has {name}, which nobody runs");
        }
    }
}
