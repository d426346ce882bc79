//! Tests that each key of a backend changes the settings, or is documented to have no effect.

use super::key_spec::{KeySpec, Meaning};
use super::value::Kind;
use super::{BackendSettings, Effective, Overrides, Settings, all_keys};
use std::collections::BTreeSet;
use std::path::Path;

const FAMILIES: [&str; 6] = ["bitcask.", "leveled.", "leveldb.", "hanoidb.", "memory_backend.", "multi_backend"];

/// For each key, what else has to be set for it to count, and the key with a value other than its
/// default. Lines are separated by `;`.
const ANOTHER_VALUE: &[(&str, &str)] = &[
    ("", "bitcask.data_root = /x"),
    ("", "bitcask.sync.strategy = o_sync"),
    ("bitcask.sync.strategy = interval", "bitcask.sync.interval = 7s"),
    ("", "bitcask.max_file_size = 7MB"),
    ("", "bitcask.merge.policy = never"),
    ("bitcask.merge.policy = window", "bitcask.merge.window.start = 7"),
    ("bitcask.merge.policy = window", "bitcask.merge.window.end = 7"),
    ("", "bitcask.merge.window.utc_offset_minutes = 7"),
    ("", "bitcask.merge.triggers.fragmentation = 7"),
    ("", "bitcask.merge.triggers.dead_bytes = 7MB"),
    ("", "bitcask.merge.thresholds.fragmentation = 7"),
    ("", "bitcask.merge.thresholds.dead_bytes = 7MB"),
    ("", "bitcask.merge.thresholds.small_file = 7MB"),
    ("", "bitcask.merge.bytes_per_second = 7MB"),
    ("", "bitcask.merge_check_interval = 7m"),
    ("", "bitcask.merge_check_jitter = 7%"),
    ("", "bitcask.max_merge_size = 7GB"),
    ("", "bitcask.max_open_files = 77"),
    ("", "bitcask.expiry = 7d"),
    ("", "bitcask.expiry.grace_time = 7s"),
    ("", "bitcask.compression = lz4"),
    ("bitcask.compression = zstd", "bitcask.compression.level = 7"),
    ("bitcask.compression = zstd", "bitcask.compression.point = on_compact"),
    ("storage_backend = leveled", "leveled.data_root = /x"),
    ("storage_backend = leveled", "leveled.sync_strategy = riak_sync"),
    ("storage_backend = leveled", "leveled.compression_method = lz4"),
    ("storage_backend = leveled", "leveled.compression_point = on_compact"),
    ("storage_backend = leveled", "leveled.compression_level = 7"),
    ("storage_backend = leveled", "leveled.ledger_compression = none"),
    ("storage_backend = leveled", "leveled.journal_size = 7MB"),
    ("storage_backend = leveled", "leveled.journal_objectcount = 7"),
    ("storage_backend = leveled", "leveled.penciller_cache_size = 7"),
    ("storage_backend = leveled", "leveled.penciller_memory = 7MB"),
    ("storage_backend = leveled", "leveled.block_cache_size = 7MB"),
    ("storage_backend = leveled", "leveled.max_open_files = 77"),
    ("storage_backend = leveled", "leveled.compaction_low_hour = 7"),
    ("storage_backend = leveled", "leveled.compaction_top_hour = 7"),
    ("storage_backend = leveled", "leveled.compaction_utc_offset_minutes = 7"),
    ("storage_backend = leveled", "leveled.compaction_runs_perday = 7"),
    ("storage_backend = leveled", "leveled.singlefile_compactionpercentage = 7.0"),
    ("storage_backend = leveled", "leveled.maxrunlength_compactionpercentage = 75.0"),
    ("storage_backend = leveled", "leveled.compaction_bytes_per_second = 7MB"),
    ("storage_backend = leveled", "leveled.snapshot_timeout_short = 7"),
    ("storage_backend = leveled", "leveled.snapshot_timeout_long = 7"),
    ("storage_backend = leveldb", "leveldb.data_root = /x"),
    ("storage_backend = leveldb", "leveldb.maximum_memory.percent = 7"),
    ("storage_backend = leveldb", "leveldb.maximum_memory = 77MB"),
    ("storage_backend = leveldb", "leveldb.limited_developer_mem = on"),
    ("storage_backend = leveldb; leveldb.maximum_memory = 77MB", "leveldb.write_buffer_size_max = 70KB"),
    ("storage_backend = leveldb; leveldb.maximum_memory = 77MB", "leveldb.block_cache_threshold = 50MB"),
    ("storage_backend = leveldb", "leveldb.sync_on_write = on"),
    ("storage_backend = leveldb", "leveldb.bloomfilter = off"),
    ("storage_backend = leveldb", "leveldb.block.size = 7KB"),
    ("storage_backend = leveldb", "leveldb.block.restart_interval = 7"),
    ("storage_backend = leveldb", "leveldb.compression = off"),
    ("storage_backend = leveldb", "leveldb.max_open_files = 77"),
    ("storage_backend = leveldb; leveldb.expiration.retention_time = 7d", "leveldb.expiration = on"),
    ("storage_backend = leveldb; leveldb.expiration = on", "leveldb.expiration.retention_time = 7d"),
    ("storage_backend = hanoidb", "hanoidb.data_root = /x"),
    ("storage_backend = memory", "memory_backend.ttl = 7s"),
    ("storage_backend = memory", "memory_backend.max_memory_per_vnode = 7MB"),
    (
        "storage_backend = multi; multi_backend.a.storage_backend = memory; multi_backend.b.storage_backend = leveled",
        "multi_backend.default = b",
    ),
    ("storage_backend = multi; multi_backend.a.storage_backend = memory", "multi_backend.b.storage_backend = leveled"),
    ("storage_backend = prefix_multi; multi_backend.a.storage_backend = memory", "multi_backend_prefix_list = 0b:=a"),
];

fn effective(lines: &str) -> Effective {
    let text = lines.replace(';', "\n");
    Effective::merge(Some((Path::new("x.conf"), &text)), &Overrides::default()).expect(lines)
}

fn backend(lines: &str) -> BackendSettings {
    Settings::new(&effective(lines)).expect(lines).backend
}

#[test]
fn each_key_that_works_changes_something() {
    for (context, line) in ANOTHER_VALUE {
        let (before, after) = (backend(context), backend(&format!("{context}; {line}")));
        assert_ne!(format!("{before:?}"), format!("{after:?}"), "{line} changes nothing");
    }
    let name =
        |line: &str| line.split_once(" = ").map(|(key, _)| key.replace(".b.", ".$name.")).expect("an assignment");
    let tried: BTreeSet<String> = ANOTHER_VALUE.iter().map(|(_, line)| name(line)).collect();
    let works = all_keys().filter(|spec| spec.meaning == Meaning::Works);
    let of_backends = works.map(|spec| spec.name).filter(|name| FAMILIES.iter().any(|f| name.starts_with(f)));
    let untried: Vec<_> = of_backends.filter(|n| !tried.contains(*n)).collect();
    assert!(untried.is_empty(), "{untried:?}");
}

/// A value of a key that is not its default.
fn another_value(spec: &KeySpec) -> &'static str {
    let words: &'static [&'static str] = if let Kind::Choice(words) = spec.kind { words } else { &[] };
    let default = spec.default.and_then(|text| spec.kind.parse(text).ok());
    let mut values = words.iter().copied().chain(["on", "off", "7", "8", "7MB", "7s"]);
    let another = values.find(|text| spec.kind.parse(text).is_ok_and(|value| Some(value) != default));
    another.expect(spec.name)
}

#[test]
fn each_key_without_effect_says_why() {
    for spec in all_keys().filter(|spec| FAMILIES.iter().any(|family| spec.name.starts_with(family))) {
        let (Meaning::NoEffect(why) | Meaning::NotSupportedYet(why)) = spec.meaning else { continue };
        let value = another_value(spec);
        for key in [spec.name.to_owned(), format!("multi_backend.a.{}", spec.name)] {
            let warnings = effective(&format!("{key} = {value}")).warnings;
            let said = warnings.iter().map(ToString::to_string).collect::<String>();
            assert!(said.contains(&format!("{key} has no effect: {why}")), "{said}");
        }
    }
}
