//! Tests that every file of benches/seeds is a valid configuration that needs no change, and that
//! it asks for what its name says.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use ombak_bench::cli::{Planned, explain};
use ombak_bench::config::{Config, Mode, Settings, scale};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PB: &str = "basho_bench_driver_riakc_pb";
const HTTP: &str = "basho_bench_driver_http_raw";
const NHS: &str = "basho_bench_driver_nhs";
const ENGINE: &str = "basho_bench_driver_bitcask";

/// For each file: driver, workers, minutes, and weights of the operations.
const SEEDS: &[(&str, &str, usize, u64, &str)] = &[
    ("backends-test1", PB, 100, 1440, "get 5, update 1"),
    ("backends-test2-sync", PB, 100, 1440, "get 5, update 1"),
    ("backends-test3", PB, 100, 1440, "get 5, update 1"),
    ("backends-test4", NHS, 100, 1440, "get-unique 3, put-unique 1"),
    ("backends-test5", NHS, 100, 1440, "get-unique 3, put-unique 1"),
    ("backends-test6", NHS, 100, 1440, "get-unique 1, put-unique 1"),
    ("backends-test6-200workers", NHS, 200, 1440, "get-unique 1, put-unique 1"),
    ("connections-1000-32min", PB, 1000, 32, "get 1, update 1"),
    ("connections-1000-8min", PB, 1000, 8, "get 1, update 1"),
    ("connections-500-32min", PB, 500, 32, "get 1, update 1"),
    ("connections-500-8min", PB, 500, 8, "get 1, update 1"),
    (
        "nhs-general",
        NHS,
        100,
        1920,
        "alwaysget-pb 620, alwaysget-updatewith2i 130, put-unique 90, get-unique 130, delete-unique 25, \
         postcodequery-http 2, dobquery-http 3",
    ),
    ("puts-50b-engine", ENGINE, 4, 5, "put 1"),
    ("puts-50b-server", PB, 10, 5, "put 1"),
    ("workers-2-http-1kb", HTTP, 2, 5, "get 1, put 1"),
    ("workers-2-pb-1kb", PB, 2, 5, "get 1, put 1"),
    ("workers-6-http-1kb", HTTP, 6, 5, "get 1, put 1"),
    ("workers-6-http-500kb", HTTP, 6, 5, "get 1, put 1"),
    ("workers-6-pb-1kb", PB, 6, 5, "get 1, put 1"),
    ("workers-6-pb-500kb", PB, 6, 5, "get 1, put 1"),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/seeds")
}

/// The files by name without extension.
fn files() -> BTreeMap<String, PathBuf> {
    let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|ending| ending == "config"))
        .map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), file))
        .collect()
}

fn settings(name: &str) -> Settings {
    Settings::from_files(&[directory().join(format!("{name}.config"))]).unwrap()
}

#[test]
fn every_seed_is_listed() {
    let names: Vec<String> = files().into_keys().collect();
    assert_eq!(names, SEEDS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    let readme = std::fs::read_to_string(directory().join("README.md")).unwrap();
    for name in names {
        assert!(readme.contains(&format!("| `{name}` |")), "README.md does not list {name}");
    }
}

#[test]
fn every_seed_is_what_it_is_called() {
    for (name, driver, workers, minutes, operations) in SEEDS {
        let config = Config::from_settings(settings(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(config.warnings, Vec::<String>::new(), "{name}");
        assert_eq!(config.mode, Mode::Max, "{name}");
        assert_eq!(config.concurrent, *workers, "{name}");
        assert_eq!(config.duration.unwrap().as_secs(), minutes * 60, "{name}");
        assert_eq!(config.settings.get("driver").unwrap().as_atom(), Some(*driver), "{name}");
        let shares: Vec<_> = config.operations.iter().map(|op| format!("{} {}", op.label, op.weight)).collect();
        assert_eq!(shares.join(", "), *operations, "{name}");
    }
}

#[test]
fn keys_and_values_are_the_published_ones() {
    for (name, key, expected) in [
        ("backends-test1", "key_generator", "{eightytwenty_int, 60000000}"),
        ("backends-test1", "value_generator", "{semi_compressible, 8000, 8000, 10, 0.1}"),
        ("backends-test2-sync", "key_generator", "{eightytwenty_int, 60000000}"),
        ("backends-test2-sync", "value_generator", "{semi_compressible, 8000, 8000, 10, 0.1}"),
        ("backends-test3", "key_generator", "{eightytwenty_int, 120000000}"),
        ("backends-test3", "value_generator", "{semi_compressible, 4000, 4000, 10, 0.1}"),
        ("backends-test4", "unique", "{8000, skew_order}"),
        ("backends-test5", "unique", "{4000, key_order}"),
        ("backends-test6", "unique", "{2000, key_order}"),
        ("backends-test6-200workers", "unique", "{2000, key_order}"),
        ("workers-6-pb-1kb", "value_generator", "{fixed_bin, 1024}"),
        ("workers-6-http-500kb", "value_generator", "{fixed_bin, 512000}"),
        ("puts-50b-server", "key_generator", "{int_to_bin, {uniform_int, 1000000000}}"),
        ("puts-50b-engine", "key_generator", "{int_to_bin, {uniform_int, 1000000000}}"),
        ("puts-50b-server", "value_generator", "{fixed_bin, 50}"),
        ("puts-50b-engine", "value_generator", "{fixed_bin, 50}"),
        ("nhs-general", "value_generator", "{semi_compressible, 10000, 2000, 10, 0.1}"),
        ("nhs-general", "alwaysget", "{2000000, 700000, skew_order}"),
    ] {
        assert_eq!(settings(name).get(key).unwrap().to_string(), expected, "{name}");
    }
}

#[test]
fn every_seed_shrinks_and_says_what_it_is() {
    for (name, ..) in SEEDS {
        let scaled = scale(&settings(name), 0.0001, None).unwrap();
        let config = Config::from_settings(scaled.settings).unwrap_or_else(|error| panic!("{name}: {error}"));
        let secs = config.duration.unwrap().as_secs_f64();
        assert!((1.0..=12.0).contains(&secs), "{name} runs for {secs} s");
        let lines = explain(&Planned { config, changes: scaled.changes });
        assert!(lines.iter().any(|line| line.starts_with("  duration: ")), "{name}: {lines:#?}");
        assert!(!lines.iter().any(|line| line == "warnings:"), "{name}: {lines:#?}");
    }
}
