//! What the simulator runs must reach the outside only through the traits of `ombak_runtime` and
//! the file system of `ombak_storage`, or a seed would not decide everything. This test reads the
//! sources of those crates and fails on a name that goes around the traits.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that the simulator runs.
const CRATES: &[&str] = &["storage", "node-files", "kv", "repair", "peer", "cluster", "failure-detection", "metadata"];

/// Files that the simulator does not run, the three that are the edge to the machine, and one that
/// sleeps while another thread holds a lock. The simulator has one thread.
const EXCEPT: &[&str] = &[
    "storage/src/machine.rs",
    "storage/src/polite_lock.rs",
    "storage/src/fs/real.rs",
    "storage/src/fs/slow.rs",
    "storage/src/ledger",
    "storage/src/leveled",
    "storage/src/leveldb",
];

/// Names that go around the traits.
const FORBIDDEN: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    ".elapsed()",
    "getrandom::",
    "rand::thread_rng",
    "rand::random",
    "thread::spawn",
    "thread::Builder",
    "thread::current",
    "thread::sleep",
    "tokio::spawn",
    "tokio::time",
    "tokio::net",
    "tokio::task",
    "tokio::select!",
];

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether only tests use a file.
fn is_for_tests(path: &Path) -> bool {
    let mut names = path.components().filter_map(|part| part.as_os_str().to_str());
    names.any(|name| matches!(name, "tests" | "tests.rs" | "fuzzing.rs" | "properties.rs" | "examples"))
}

#[test]
fn simulated_crates_reach_the_outside_only_through_the_traits() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut around = Vec::new();
    for name in CRATES {
        let source = crates.join(name).join("src");
        let mut files = Vec::new();
        if source.is_dir() {
            rust_files(&source, &mut files);
        }
        for path in files {
            let place = path.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned();
            if EXCEPT.iter().any(|except| place.starts_with(except)) || is_for_tests(Path::new(&place)) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            // What follows is for tests.
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            for (at, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
                around.extend(
                    FORBIDDEN
                        .iter()
                        .filter(|name| line.contains(*name))
                        .map(|name| format!("{place}:{}: {name}", at + 1)),
                );
            }
        }
    }
    assert!(around.is_empty(), "use the traits of ombak_runtime instead of:\n{}", around.join("\n"));
}
