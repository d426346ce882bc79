//! The document about security names each permission and each request.

use crate::admin::known_permissions;
use crate::{admin, http, pb};
use std::fs;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");

fn document() -> String {
    fs::read_to_string(DOCUMENT).unwrap()
}

#[test]
fn every_permission_is_named() {
    let document = document();
    let missing: Vec<_> =
        known_permissions().into_iter().filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/security.md does not name {missing:?}");
}

#[test]
fn every_message_has_a_row() {
    let document = document();
    let missing: Vec<_> = pb::codes().into_iter().filter(|code| !document.contains(&format!("\n| {code} "))).collect();
    assert!(missing.is_empty(), "docs/security.md says nothing of the messages {missing:?}");
}

#[test]
fn every_path_has_a_row() {
    let document = document();
    let missing: Vec<_> = http::paths().filter(|path| !document.contains(&format!("`{path}`"))).collect();
    assert!(missing.is_empty(), "docs/security.md says nothing of the paths {missing:?}");
}

#[test]
fn every_path_of_administration_has_a_row() {
    let document = document();
    let missing: Vec<_> = admin::rows().filter(|row| !document.contains(&**row)).collect();
    assert!(missing.is_empty(), "docs/security.md lacks these rows:\n{}", missing.join("\n"));
}
