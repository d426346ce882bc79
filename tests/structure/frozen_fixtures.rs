//! What was frozen of a released version stays as it is: this test compares a digest of each
//! fixture with the list in `frozen_fixtures.txt`. A version is added to the list when it is
//! released. `crates/fixtures` says how a new version is frozen.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The version that is not released yet. Its fixtures may still change.
const UNRELEASED: &str = "version-2";

/// FNV-1a with 64 bits: it is for accidents, not for forgers.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The digests of the fixtures of released versions, by their paths below `crates`.
fn found() -> BTreeMap<String, u64> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut found = BTreeMap::new();
    for owner in fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(versions) = fs::read_dir(owner.join("tests/fixtures")) else { continue };
        for version in versions.map(|entry| entry.unwrap().path()) {
            let name = version.file_name().unwrap().to_str().unwrap();
            if !name.starts_with("version-") || name == UNRELEASED {
                continue;
            }
            for file in fs::read_dir(&version).unwrap().map(|entry| entry.unwrap().path()) {
                let path = file.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned();
                found.insert(path, digest(&fs::read(&file).unwrap()));
            }
        }
    }
    found
}

#[test]
fn what_is_frozen_has_not_changed() {
    let frozen: BTreeMap<String, u64> = include_str!("frozen_fixtures.txt")
        .lines()
        .map(|line| {
            let (digest, path) = line.split_once(' ').unwrap();
            (path.to_owned(), u64::from_str_radix(digest, 16).unwrap())
        })
        .collect();
    let found = found();
    for (path, digest) in &found {
        assert_eq!(frozen.get(path), Some(digest), "{digest:016x} {path}: this was released, or is not listed");
    }
    let missing: Vec<&String> = frozen.keys().filter(|path| !found.contains_key(*path)).collect();
    assert!(missing.is_empty(), "these were released: {missing:?}");
}
