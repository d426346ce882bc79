//! Every key, in the order in which `ombak config example` shows them.
//!
//! A key is a [`KeySpec`] in the file of its family. A new family is a file with its `KEYS`, which
//! [`all`] lists. What reads the value is in `config/settings.rs`, or in the file of a group of
//! settings beside it. A setting that changes while the node runs is in `node/live_settings.rs`.
//!
//! Sources: docs/riak/semantics.md §15 (names and defaults), docs/riak/backends.md §2.8, §3, §4.5,
//! §5, §6.

mod anti_entropy;
mod bitcask;
mod cluster;
mod features;
mod leveldb;
mod leveled;
mod node;
mod objects;
mod replication;
mod scrubbing;
mod storage;

use super::KeySpec;
pub(crate) use storage::SINGLE_BACKENDS;

/// The prefixes of backend options. Each of these backends can be one of several.
const OPTION_PREFIXES: &[&str] = &["bitcask.", "leveled.", "leveldb.", "hanoidb.", "memory_backend."];

/// All keys.
pub fn all() -> impl Iterator<Item = &'static KeySpec> {
    let families = [
        node::KEYS,
        objects::KEYS,
        storage::KEYS,
        bitcask::KEYS,
        leveled::KEYS,
        leveldb::KEYS,
        scrubbing::KEYS,
        anti_entropy::KEYS,
        cluster::KEYS,
        features::KEYS,
        replication::KEYS,
    ];
    families.into_iter().flatten()
}

/// The specification of `key`. A literal name takes precedence over a pattern. An option of one of
/// several backends has the specification of the option itself.
pub fn find(key: &str) -> Option<&'static KeySpec> {
    all()
        .find(|spec| !spec.is_pattern() && spec.name == key)
        .or_else(|| all().find(|spec| spec.matches(key)))
        .or_else(|| split_of_several(key).and_then(|(_, option)| all().find(|spec| spec.name == option)))
}

/// Splits `multi_backend.NAME.OPTION` into the name of the backend and the option, if OPTION is an
/// option of a backend.
pub fn split_of_several(key: &str) -> Option<(&str, &str)> {
    let (name, option) = key.strip_prefix("multi_backend.")?.split_once('.')?;
    let is_of_a_backend = OPTION_PREFIXES.iter().any(|prefix| option.starts_with(prefix));
    (!name.is_empty() && is_of_a_backend).then_some((name, option))
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
            if let Meaning::NoEffect(text) | Meaning::NotSupportedYet(text) = spec.meaning {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}", spec.name);
            }
        }
    }

    /// The names in docs/riak/semantics.md §15 and docs/riak/backends.md §2.8, §3, §4.5, §5 and §6,
    /// with their patterns filled in.
    const RIAKS: &str = include_str!("riak_keys.txt");

    #[test]
    fn every_key_of_riak_is_known() {
        let unknown: Vec<&str> = RIAKS.split_whitespace().filter(|key| find(key).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn a_literal_name_goes_before_a_pattern() {
        assert_eq!(find("multi_backend.default").map(|s| s.name), Some("multi_backend.default"));
        assert_eq!(
            find("multi_backend.a.storage_backend").map(|s| s.name),
            Some("multi_backend.$name.storage_backend")
        );
    }

    #[test]
    fn options_of_one_of_several_backends_are_known() {
        assert_eq!(find("multi_backend.a.bitcask.sync.strategy").map(|s| s.name), Some("bitcask.sync.strategy"));
        assert_eq!(find("multi_backend.a.memory_backend.ttl").map(|s| s.name), Some("memory_backend.ttl"));
        for unknown in ["multi_backend.a.nonsense", "multi_backend.a.ring_size", "multi_backend..bitcask.data_root"] {
            assert_eq!(find(unknown), None, "{unknown}");
        }
    }
}
