//! Dependencies between the crates point one way: this test reads the manifests (through `cargo
//! metadata`) and fails on an edge that is not listed in [`CRATES`]. Normal, build and development
//! dependencies all count.
//!
//! Modules inside a crate are the subject of `module_floors` and `module_circles`. ARCHITECTURE.md
//! gives the reasons for the list.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Every crate of the workspace, and the crates of the workspace that it may use.
const CRATES: &[(&str, &[&str])] = &[
    ("ombak-fixtures", &[]),
    ("ombak-types", &[]),
    ("ombak-proto", &["ombak-types"]),
    ("ombak-ring", &["ombak-types"]),
    ("ombak-crdt", &["ombak-fixtures", "ombak-types"]),
    ("ombak-script", &[]),
    ("ombak-mapreduce", &["ombak-types"]),
    ("ombak-tictac", &["ombak-types"]),
    ("ombak-search", &["ombak-types"]),
    ("ombak-search-index", &["ombak-types", "ombak-search"]),
    ("ombak-security", &["ombak-types"]),
    ("ombak-riak-files", &["ombak-types"]),
    ("ombak-storage", &["ombak-types"]),
    ("ombak-stats", &[]),
    ("ombak-audit", &["ombak-types", "ombak-stats"]),
    ("ombak-monitoring", &["ombak-types", "ombak-ring", "ombak-storage", "ombak-stats"]),
    ("ombak-node-files", &["ombak-fixtures", "ombak-types", "ombak-storage"]),
    ("ombak-runtime", &["ombak-types"]),
    ("ombak-functions", &["ombak-types", "ombak-stats", "ombak-runtime", "ombak-script"]),
    ("ombak-tls", &["ombak-runtime"]),
    ("ombak-peer", &["ombak-fixtures", "ombak-types", "ombak-runtime", "ombak-tls"]),
    ("ombak-failure-detection", &["ombak-fixtures", "ombak-types", "ombak-runtime"]),
    (
        "ombak-metadata",
        &["ombak-fixtures", "ombak-types", "ombak-ring", "ombak-storage", "ombak-node-files", "ombak-runtime"],
    ),
    (
        "ombak-kv",
        &[
            "ombak-fixtures",
            "ombak-types",
            "ombak-ring",
            "ombak-storage",
            "ombak-tictac",
            "ombak-stats",
            "ombak-node-files",
            "ombak-runtime",
        ],
    ),
    (
        "ombak-repair",
        &[
            "ombak-fixtures",
            "ombak-types",
            "ombak-ring",
            "ombak-storage",
            "ombak-node-files",
            "ombak-stats",
            "ombak-runtime",
            "ombak-kv",
        ],
    ),
    (
        "ombak-jobs",
        &[
            "ombak-types",
            "ombak-ring",
            "ombak-storage",
            "ombak-stats",
            "ombak-runtime",
            "ombak-script",
            "ombak-functions",
            "ombak-kv",
            "ombak-mapreduce",
        ],
    ),
    (
        "ombak-key-queues",
        &["ombak-types", "ombak-stats", "ombak-runtime", "ombak-storage", "ombak-node-files", "ombak-kv"],
    ),
    (
        "ombak-cluster",
        &[
            "ombak-fixtures",
            "ombak-types",
            "ombak-ring",
            "ombak-storage",
            "ombak-tictac",
            "ombak-node-files",
            "ombak-stats",
            "ombak-runtime",
            "ombak-peer",
            "ombak-metadata",
            "ombak-failure-detection",
            "ombak-kv",
            "ombak-repair",
            "ombak-mapreduce",
            "ombak-functions",
            "ombak-jobs",
            "ombak-security",
        ],
    ),
    (
        "ombak-datatypes",
        &[
            "ombak-types",
            "ombak-ring",
            "ombak-crdt",
            "ombak-storage",
            "ombak-stats",
            "ombak-runtime",
            "ombak-kv",
            "ombak-repair",
        ],
    ),
    (
        "ombak-searching",
        &[
            "ombak-types",
            "ombak-stats",
            "ombak-runtime",
            "ombak-storage",
            "ombak-crdt",
            "ombak-datatypes",
            "ombak-kv",
            "ombak-search",
            "ombak-search-index",
        ],
    ),
    (
        "ombak-hooks",
        &[
            "ombak-types",
            "ombak-stats",
            "ombak-runtime",
            "ombak-script",
            "ombak-mapreduce",
            "ombak-functions",
            "ombak-kv",
        ],
    ),
    ("ombak-backup", &["ombak-types", "ombak-storage", "ombak-node-files", "ombak-kv"]),
    (
        "ombak-api",
        &[
            "ombak-types",
            "ombak-proto",
            "ombak-ring",
            "ombak-crdt",
            "ombak-storage",
            "ombak-tictac",
            "ombak-stats",
            "ombak-monitoring",
            "ombak-runtime",
            "ombak-kv",
            "ombak-repair",
            "ombak-mapreduce",
            "ombak-jobs",
            "ombak-key-queues",
            "ombak-datatypes",
            "ombak-search",
            "ombak-searching",
            "ombak-backup",
            "ombak-audit",
            "ombak-security",
        ],
    ),
    ("ombak-client", &["ombak-types", "ombak-proto"]),
    (
        "ombak-server",
        &[
            "ombak-types",
            "ombak-proto",
            "ombak-ring",
            "ombak-riak-files",
            "ombak-storage",
            "ombak-node-files",
            "ombak-runtime",
            "ombak-audit",
            "ombak-tls",
            "ombak-kv",
            "ombak-repair",
            "ombak-script",
            "ombak-functions",
            "ombak-hooks",
            "ombak-jobs",
            "ombak-key-queues",
            "ombak-datatypes",
            "ombak-searching",
            "ombak-cluster",
            "ombak-backup",
            "ombak-api",
            "ombak-client",
        ],
    ),
    ("ombak-bench", &["ombak-types", "ombak-proto", "ombak-storage", "ombak-client"]),
    ("ombak-floor", &["ombak-proto", "ombak-storage", "ombak-client"]),
    (
        "ombak-sim",
        &[
            "ombak-types",
            "ombak-ring",
            "ombak-storage",
            "ombak-runtime",
            "ombak-peer",
            "ombak-failure-detection",
            "ombak-metadata",
            "ombak-crdt",
            "ombak-datatypes",
            "ombak-cluster",
            "ombak-kv",
            "ombak-repair",
            "ombak-key-queues",
        ],
    ),
    ("ombak-structure", &[]),
];

/// Crates without I/O, clock or randomness, and the dependencies that would give them one.
const PURE: &[&str] = &[
    "ombak-types",
    "ombak-proto",
    "ombak-ring",
    "ombak-crdt",
    "ombak-mapreduce",
    "ombak-tictac",
    "ombak-search",
    "ombak-security",
];
const IMPURE: &[&str] = &["getrandom", "hyper", "rand", "rustix", "socket2", "tokio", "tracing"];

/// Package name → names of the dependencies that its manifest declares, as `cargo metadata` reports
/// them.
fn declared() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata starts");
    assert!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["name"].as_str().unwrap().to_owned(), names(&package["dependencies"])))
        .collect()
}

#[test]
fn every_crate_is_listed() {
    let listed: BTreeSet<&str> = CRATES.iter().map(|(name, _)| *name).collect();
    let declared = declared();
    let present: BTreeSet<&str> = declared.keys().map(String::as_str).collect();
    assert_eq!(present, listed, "the workspace's members (left) and the list in this file (right) differ");
}

#[test]
fn crates_use_only_what_the_list_allows() {
    let declared = declared();
    let forbidden: Vec<String> = CRATES
        .iter()
        .flat_map(|(name, allowed)| {
            let uses = declared.get(*name).into_iter().flatten();
            uses.filter(|used| used.starts_with("ombak-") && !allowed.contains(&used.as_str()))
                .map(move |used| format!("{name} -> {used}"))
        })
        .collect();
    assert!(forbidden.is_empty(), "dependencies that the architecture does not allow: {}", forbidden.join(", "));
}

#[test]
fn pure_crates_have_no_means_of_input_or_output() {
    let declared = declared();
    for name in PURE {
        let impure: Vec<&str> = IMPURE.iter().copied().filter(|used| declared[*name].contains(*used)).collect();
        assert!(impure.is_empty(), "{name} is pure and must not depend on {}", impure.join(", "));
    }
}

#[test]
fn allowed_edges_have_no_cycle() {
    // The list is written in an order in which every crate comes after all that it may use.
    for (index, (name, allowed)) in CRATES.iter().enumerate() {
        let before: BTreeSet<&str> = CRATES[..index].iter().map(|(earlier, _)| *earlier).collect();
        let later: Vec<&str> = allowed.iter().copied().filter(|used| !before.contains(used)).collect();
        assert!(later.is_empty(), "{name} may use {}, which the list names only later", later.join(", "));
    }
}
