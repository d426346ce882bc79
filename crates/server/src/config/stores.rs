//! Converts the keys of bitcask, leveled, leveldb and memory to the configuration types of the
//! storage crate.

use super::backend::DiskSettings;
use super::ledger_memory::LedgerMemory;
use super::problem::Problem;
use super::reader::Reader;
use super::value::Value;
use ombak_storage::{
    Compression, CompressionPoint, JournalConfig, LedgerConfig, MemoryConfig, MergeConfig, MergePolicy, SyncStrategy,
};
use std::time::Duration;

const SECS_A_DAY: u32 = 86_400;

/// The approximate memory that a ledger uses for one key with its head, in bytes.
const LEDGER_KEY_BYTES: u64 = 210;
/// The smallest write buffer of a ledger, in bytes. With a smaller one, the tables that it writes
/// would be too small to be useful.
const PENCILLER_BYTES_MIN: u64 = 64 << 10;

pub(super) fn memory(from: &Reader<'_>) -> MemoryConfig {
    MemoryConfig {
        ttl_secs: from.optional_duration("memory_backend.ttl").map(secs),
        bytes_max: from.bytes("memory_backend.max_memory_per_vnode").ok(),
        ..MemoryConfig::default()
    }
}

pub(super) fn bitcask(from: &Reader<'_>) -> Result<DiskSettings, Problem> {
    let journal = JournalConfig {
        sync: match from.text("bitcask.sync.strategy")?.as_str() {
            "o_sync" => SyncStrategy::OSync,
            "interval" => SyncStrategy::Interval(from.duration("bitcask.sync.interval")?),
            _ => SyncStrategy::None,
        },
        file_bytes_max: from.bytes("bitcask.max_file_size")?,
        expiry_secs: from.optional_duration("bitcask.expiry").map(secs),
        expiry_grace_secs: secs(from.duration("bitcask.expiry.grace_time")?),
        merge: bitcask_merge(from)?,
        compression: compression(&from.text("bitcask.compression")?, from.count("bitcask.compression.level")?),
        compression_point: compression_point(&from.text("bitcask.compression.point")?),
        open_files_max: from.count("bitcask.max_open_files")?,
        ..JournalConfig::default()
    };
    disk(from, "bitcask.data_root", journal, LedgerConfig::default())
}

fn bitcask_merge(from: &Reader<'_>) -> Result<MergeConfig, Problem> {
    Ok(MergeConfig {
        policy: match from.text("bitcask.merge.policy")?.as_str() {
            "never" => MergePolicy::Never,
            "window" => MergePolicy::Window {
                start_hour: from.count("bitcask.merge.window.start")?,
                end_hour: from.count("bitcask.merge.window.end")?,
            },
            _ => MergePolicy::Always,
        },
        utc_offset_secs: from.count::<i32>("bitcask.merge.window.utc_offset_minutes")? * 60,
        trigger_fragmentation_percent: from.count("bitcask.merge.triggers.fragmentation")?,
        trigger_dead_bytes: from.bytes("bitcask.merge.triggers.dead_bytes")?,
        threshold_fragmentation_percent: from.count("bitcask.merge.thresholds.fragmentation")?,
        threshold_dead_bytes: from.bytes("bitcask.merge.thresholds.dead_bytes")?,
        threshold_small_file_bytes: from.bytes("bitcask.merge.thresholds.small_file")?,
        dead_percent_max: None,
        bytes_max: from.bytes("bitcask.max_merge_size")?,
        check_interval_secs: secs(from.duration("bitcask.merge_check_interval")?),
        check_jitter_percent: from.count("bitcask.merge_check_jitter")?,
        io_bytes_per_sec: from.bytes("bitcask.merge.bytes_per_second")?.max(1),
    })
}

pub(super) fn leveled(from: &Reader<'_>) -> Result<DiskSettings, Problem> {
    let method = from.text("leveled.compression_method")?;
    let journal = JournalConfig {
        sync: if from.text("leveled.sync_strategy")? == "none" { SyncStrategy::None } else { SyncStrategy::OSync },
        file_bytes_max: from.bytes("leveled.journal_size")?,
        merge: leveled_compaction(from)?,
        compression: compression(&method, from.count("leveled.compression_level")?),
        compression_point: compression_point(&from.text("leveled.compression_point")?),
        file_records_max: from.count("leveled.journal_objectcount")?,
        snapshot_secs_max: Some(from.count("leveled.snapshot_timeout_long")?),
        ordered_snapshot_secs_max: Some(from.count("leveled.snapshot_timeout_short")?),
        open_files_max: from.count("leveled.max_open_files")?,
        ..ombak_storage::leveled::default_journal()
    };
    let ledger_method = from.text("leveled.ledger_compression")?;
    let ledger = LedgerConfig {
        memory_bytes_max: penciller_bytes(from)?,
        cache_bytes: from.bytes("leveled.block_cache_size")?,
        open_files_max: from.count("leveled.max_open_files")?,
        compresses: if ledger_method == "as_store" { method != "none" } else { ledger_method != "none" },
        ..LedgerConfig::default()
    };
    disk(from, "leveled.data_root", journal, ledger)
}

/// The write buffer of one partition, in bytes: room for the configured number of keys, but at most
/// the partition's share of the memory for all partitions.
fn penciller_bytes(from: &Reader<'_>) -> Result<u64, Problem> {
    let keys = from.count::<u64>("leveled.penciller_cache_size")?;
    let share = from.bytes("leveled.penciller_memory")? / from.count::<u64>("ring_size")?.max(1);
    Ok((keys * LEDGER_KEY_BYTES).min(share.max(PENCILLER_BYTES_MIN)))
}

fn leveled_compaction(from: &Reader<'_>) -> Result<MergeConfig, Problem> {
    let (start_hour, end_hour) =
        (from.count("leveled.compaction_low_hour")?, from.count("leveled.compaction_top_hour")?);
    // Percentages of current data. A single file with less than the first is compacted; files are
    // compacted until the store as a whole has at least the second.
    let kept_of_file: u8 = from.count("leveled.singlefile_compactionpercentage")?;
    let kept_of_store: u16 = from.count("leveled.maxrunlength_compactionpercentage")?;
    let all_day = (start_hour, end_hour) == (0, 23);
    Ok(MergeConfig {
        policy: if all_day { MergePolicy::Always } else { MergePolicy::Window { start_hour, end_hour } },
        utc_offset_secs: from.count::<i32>("leveled.compaction_utc_offset_minutes")? * 60,
        check_interval_secs: SECS_A_DAY / from.count::<u32>("leveled.compaction_runs_perday")?,
        io_bytes_per_sec: from.bytes("leveled.compaction_bytes_per_second")?.max(1),
        trigger_fragmentation_percent: 100 - kept_of_file.min(100),
        threshold_fragmentation_percent: 100 - kept_of_file.min(100),
        dead_percent_max: (kept_of_store > 0).then(|| (100 - kept_of_store.min(100)) * 100 / kept_of_store),
        ..MergeConfig::leveled()
    })
}

/// Hanoidb has the same options, except for the directory.
pub(super) fn leveldb(from: &Reader<'_>, data_root_key: &str, memory: &LedgerMemory) -> Result<DiskSettings, Problem> {
    let expires = from.flag("leveldb.expiration")?;
    let journal = JournalConfig {
        sync: if from.flag("leveldb.sync_on_write")? { SyncStrategy::OSync } else { SyncStrategy::None },
        expiry_secs: from.optional_duration("leveldb.expiration.retention_time").filter(|_| expires).map(secs),
        open_files_max: from.count("leveldb.max_open_files")?,
        ..ombak_storage::leveldb::default_journal()
    };
    let ledger = LedgerConfig {
        memory_bytes_max: memory.write_buffer_bytes,
        cache_bytes: memory.cache_bytes,
        open_files_max: from.count("leveldb.max_open_files")?,
        compresses: from.flag("leveldb.compression")?,
        filters: from.flag("leveldb.bloomfilter")?,
        block_bytes: block_bytes(from)?,
        restart_interval: from.count("leveldb.block.restart_interval")?,
        ..LedgerConfig::default()
    };
    disk(from, data_root_key, journal, ledger)
}

fn block_bytes(from: &Reader<'_>) -> Result<u32, Problem> {
    let key = from.key("leveldb.block.size");
    let bytes = from.bytes("leveldb.block.size")?;
    let fits = u32::try_from(bytes).ok().filter(|bytes| (1024..=1 << 20).contains(bytes));
    fits.ok_or_else(|| Problem::whole(format!("{key} = {bytes} bytes: must be from 1KB to 1MB")))
}

fn disk(
    from: &Reader<'_>,
    data_root_key: &str,
    journal: JournalConfig,
    ledger: LedgerConfig,
) -> Result<DiskSettings, Problem> {
    let data_root = from.text(data_root_key)?.into();
    let journal = JournalConfig { disk_reserve_bytes: from.bytes("disk_reserve")?, ..journal };
    let delay_file = match from.optional("disk_delay_file") {
        Some(Value::Text(path)) => Some(path.into()),
        _ => None,
    };
    let append_marks_dir = match from.optional("append_marks_dir") {
        Some(Value::Text(path)) if path != "off" => Some(path.into()),
        _ => None,
    };
    let (partitions, data_root_key) = (from.count("ring_size")?, from.key(data_root_key));
    Ok(DiskSettings { data_root, data_root_key, journal, ledger, delay_file, append_marks_dir, partitions })
}

/// The compression that a word stands for. Riak's `native` compression (zlib) is zstd here, which
/// compresses as well and is faster.
fn compression(word: &str, level: i32) -> Compression {
    match word {
        "none" => Compression::None,
        "lz4" => Compression::Lz4,
        _ => Compression::Zstd(level),
    }
}

fn compression_point(word: &str) -> CompressionPoint {
    if word == "on_compact" { CompressionPoint::OnCompact } else { CompressionPoint::OnReceipt }
}

fn secs(d: Duration) -> u32 {
    u32::try_from(d.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::backend::BackendSettings;
    use super::super::{Effective, Overrides, Settings};
    use super::*;
    use std::path::Path;

    fn disk_of(text: &str) -> DiskSettings {
        let effective = Effective::merge(Some((Path::new("x.conf"), text)), &Overrides::default()).expect("valid");
        Settings::new(&effective).expect("valid").backend.disk().expect("has files").clone()
    }

    #[test]
    fn bitcask_is_as_it_is_set() {
        let disk = disk_of(
            "bitcask.sync.strategy = interval\nbitcask.sync.interval = 250ms\nbitcask.expiry = 1d\n\
             bitcask.compression = zstd\nbitcask.compression.level = 3\nbitcask.compression.point = on_compact",
        );
        assert_eq!(disk.journal.sync, SyncStrategy::Interval(Duration::from_millis(250)));
        assert_eq!(disk.journal.expiry_secs, Some(86_400));
        assert_eq!(disk.journal.compression, Compression::Zstd(3));
        assert_eq!(disk.journal.compression_point, CompressionPoint::OnCompact);
        assert_eq!(disk_of("bitcask.compression = lz4").journal.compression, Compression::Lz4);
    }

    #[test]
    fn the_reserve_is_that_of_the_node_on_every_backend_with_files() {
        for backend in ["bitcask", "leveled", "leveldb", "hanoidb"] {
            let of = |line: &str| disk_of(&format!("storage_backend = {backend}\n{line}")).journal.disk_reserve_bytes;
            assert_eq!((of(""), of("disk_reserve = 2GB"), of("disk_reserve = 0")), (64 << 20, 2 << 30, 0), "{backend}");
        }
    }

    #[test]
    fn leveled_is_as_it_is_set() {
        let defaults = disk_of("storage_backend = leveled");
        assert_eq!(defaults.journal.merge.trigger_fragmentation_percent, 75);
        assert_eq!(defaults.journal.merge.dead_percent_max, Some(69));
        assert_eq!(defaults.journal.file_records_max, 200_000);
        assert_eq!(
            (defaults.journal.ordered_snapshot_secs_max, defaults.journal.snapshot_secs_max),
            (Some(1800), Some(86_400))
        );
        assert_eq!(defaults.journal.compression, Compression::Zstd(1));
        assert_eq!(
            (defaults.journal.file_bytes_max, defaults.journal.merge.check_interval_secs),
            (1_000_000_000, 3600)
        );
        assert_eq!(defaults.journal.merge.policy, MergePolicy::Always);
        assert!(defaults.ledger.compresses);
        let disk = disk_of(
            "storage_backend = leveled\nleveled.sync_strategy = riak_sync\nleveled.compression_method = none\n\
             leveled.journal_size = 1MB\nleveled.compaction_low_hour = 22\nleveled.compaction_top_hour = 4\n\
             leveled.penciller_cache_size = 100\nleveled.block_cache_size = 1MB",
        );
        assert_eq!((disk.journal.sync, disk.journal.compression), (SyncStrategy::OSync, Compression::None));
        assert_eq!(disk.journal.file_bytes_max, 1 << 20);
        assert_eq!(disk.journal.merge.policy, MergePolicy::Window { start_hour: 22, end_hour: 4 });
        assert_eq!((disk.ledger.memory_bytes_max, disk.ledger.cache_bytes), (21_000, 1 << 20));
        assert!(!disk.ledger.compresses, "as_store follows the method");
        assert_eq!(defaults.ledger.memory_bytes_max, 1 << 20, "a share of what 64 partitions may gather");
        let mixed =
            disk_of("storage_backend = leveled\nleveled.compression_method = none\nleveled.ledger_compression = lz4");
        assert!(mixed.ledger.compresses);
    }

    /// The scenario of riak_test `cuttlefish_configuration`, and the other keys of leveldb.
    #[test]
    fn cuttlefish_configuration_of_leveldb_is_as_it_is_set() {
        let disk = disk_of(
            "storage_backend = leveldb\nleveldb.sync_on_write = on\nleveldb.bloomfilter = off\nleveldb.block.size = 8KB\n\
             leveldb.compression = off\nleveldb.expiration = on\nleveldb.expiration.retention_time = 2h",
        );
        assert_eq!((disk.journal.sync, disk.journal.expiry_secs), (SyncStrategy::OSync, Some(7200)));
        assert_eq!((disk.ledger.filters, disk.ledger.block_bytes, disk.ledger.compresses), (false, 8192, false));
        let off =
            disk_of("storage_backend = hanoidb\nleveldb.expiration.retention_time = 2h\nleveldb.sync_on_write = on");
        assert_eq!((off.journal.expiry_secs, off.journal.sync), (None, SyncStrategy::OSync));
    }

    #[test]
    fn memory_has_limits_of_its_own() {
        let text = "storage_backend = memory\nmemory_backend.ttl = 1h\nmemory_backend.max_memory_per_vnode = 1MB";
        let effective = Effective::merge(Some((Path::new("x.conf"), text)), &Overrides::default()).expect("valid");
        let BackendSettings::Memory(config) = Settings::new(&effective).expect("valid").backend else {
            panic!("memory")
        };
        assert_eq!((config.ttl_secs, config.bytes_max), (Some(3600), Some(1 << 20)));
    }
}
