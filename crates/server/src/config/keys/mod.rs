//! Every key, in the order in which `ombak config example` shows them.
//!
//! Facts: spec/semantics.md §15 (names and defaults), spec/backends.md §2.8, §3, §4.5, §5, §6.

mod cluster;
mod features;
mod node;
mod objects;
mod replication;
mod storage;

use super::KeySpec;

/// All keys.
pub fn all() -> impl Iterator<Item = &'static KeySpec> {
    [node::KEYS, objects::KEYS, storage::KEYS, cluster::KEYS, features::KEYS, replication::KEYS].into_iter().flatten()
}

/// What is known about `key`; a literal name goes before a pattern.
pub fn find(key: &str) -> Option<&'static KeySpec> {
    all().find(|spec| !spec.is_pattern() && spec.name == key).or_else(|| all().find(|spec| spec.matches(key)))
}

#[cfg(test)]
mod tests {
    use super::super::key_spec::Meaning;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_default_is_a_value_of_its_key() {
        for spec in all() {
            if let Some(default) = spec.default
                && !default.contains("$(")
            {
                assert!(spec.kind.parse(default).is_ok(), "{} = {default}", spec.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_documented() {
        let mut seen = HashSet::new();
        for spec in all() {
            assert!(seen.insert(spec.name), "{} twice", spec.name);
            assert!(spec.doc.len() > 10 && spec.doc.ends_with('.'), "{}: {:?}", spec.name, spec.doc);
            if let Meaning::Ignored(text) | Meaning::NotYet(text) = spec.meaning {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}", spec.name);
            }
        }
    }

    /// The names of spec/semantics.md §15 and spec/backends.md §2.8, patterns filled in.
    const RIAKS: &str = include_str!("riak_keys.txt");

    #[test]
    fn every_key_of_riak_is_known() {
        let unknown: Vec<&str> = RIAKS.split_whitespace().filter(|key| find(key).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn a_literal_name_goes_before_a_pattern() {
        assert_eq!(find("multi_backend.default").map(|s| s.name), Some("multi_backend.default"));
        assert_eq!(find("multi_backend.a.storage_backend").map(|s| s.name), Some("multi_backend.$name.**"));
    }
}
