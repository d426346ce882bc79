//! Divides `leveldb.maximum_memory` into the write buffers of all partitions and one block cache.

use super::machine;
use super::problem::Problem;
use super::reader::Reader;

/// The memory of all partitions together with `leveldb.limited_developer_mem`.
const DEVELOPER_BYTES: u64 = 64 << 20;
/// The smallest write buffer of a partition. With a smaller one, the tables that it writes would be
/// too small to be useful.
const WRITE_BUFFER_BYTES_MIN: u64 = 64 << 10;
/// The memory of a partition in units of its write buffer. The buffer grows to twice its size when
/// writers have to wait for the disk, and so does the buffer that is being written to disk at the
/// same time.
const WRITE_BUFFERS: u64 = 4;

/// How much memory the ledgers of one backend may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedgerMemory {
    /// Bytes that one partition gathers in memory before it writes them to disk.
    pub(super) write_buffer_bytes: u64,
    /// Bytes of the block cache, for all partitions together.
    pub(super) cache_bytes: u64,
}

impl LedgerMemory {
    /// Reads the `leveldb.*` keys. `backends_sharing`: how many backends of the node share the
    /// memory that is set for all of them together.
    pub(super) fn of_leveldb(from: &Reader<'_>, backends_sharing: u64) -> Result<Self, Problem> {
        let (key, bytes) = budget(from, backends_sharing)?;
        let partitions = from.count::<u64>("ring_size")?;
        let threshold = from.bytes("leveldb.block_cache_threshold")?;
        let write_buffer_max = from.bytes("leveldb.write_buffer_size_max")?;
        Self::deal(bytes, partitions, threshold, write_buffer_max).ok_or_else(|| {
            let least = (2 * WRITE_BUFFERS * WRITE_BUFFER_BYTES_MIN * partitions * backends_sharing).div_ceil(1 << 20);
            Problem::whole(format!(
                "{key} comes to {bytes} bytes for a backend, too few for {partitions} partitions: at least {least}MB are needed"
            ))
        })
    }

    /// Gives half of the memory to the write buffers. They get less, but at least a quarter, if the
    /// cache would otherwise have less than `threshold`. The cache gets everything that the write
    /// buffers do not need. `None` if the write buffers would be too small to work.
    fn deal(bytes: u64, partitions: u64, threshold: u64, write_buffer_max: u64) -> Option<Self> {
        let for_buffers = (bytes / 2).min(bytes.saturating_sub(threshold)).max(bytes / 4);
        let share = for_buffers / (partitions.max(1) * WRITE_BUFFERS);
        let write_buffer_bytes = share.min(write_buffer_max.max(WRITE_BUFFER_BYTES_MIN));
        let cache_bytes = bytes - write_buffer_bytes * partitions * WRITE_BUFFERS;
        (share >= WRITE_BUFFER_BYTES_MIN / 2).then_some(Self { write_buffer_bytes, cache_bytes })
    }
}

/// The key that takes precedence, and the number of bytes that it stands for.
fn budget(from: &Reader<'_>, backends_sharing: u64) -> Result<(String, u64), Problem> {
    let (key, bytes) = if from.flag("leveldb.limited_developer_mem")? {
        ("leveldb.limited_developer_mem", DEVELOPER_BYTES)
    } else if let Ok(bytes) = from.bytes("leveldb.maximum_memory") {
        ("leveldb.maximum_memory", bytes)
    } else {
        let percent = from.count::<u64>("leveldb.maximum_memory.percent")?;
        ("leveldb.maximum_memory.percent", machine::memory_bytes() / 100 * percent)
    };
    let counts = from.key(key);
    // Memory that is set for one backend is not shared with others.
    let bytes = if counts == key { bytes / backends_sharing } else { bytes };
    Ok((counts, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn no_more_is_dealt_out_than_there_is() {
        for megabytes in [16, 64, 100, 716, 4000, 90_000] {
            for partitions in [8, 64, 256] {
                let Some(dealt) = LedgerMemory::deal(megabytes * MB, partitions, 32 * MB, 60 * MB) else { continue };
                let all = dealt.write_buffer_bytes * partitions * WRITE_BUFFERS + dealt.cache_bytes;
                assert!(all <= megabytes * MB, "{megabytes} {partitions} {dealt:?}");
                assert!(dealt.write_buffer_bytes <= 60 * MB && dealt.cache_bytes >= megabytes * MB / 4);
            }
        }
    }

    #[test]
    fn buffers_are_bounded_and_the_cache_has_the_rest() {
        let dealt = LedgerMemory::deal(100_000 * MB, 8, 32 * MB, 60 * MB).expect("plenty");
        assert_eq!(dealt, LedgerMemory { write_buffer_bytes: 60 * MB, cache_bytes: (100_000 - 1920) * MB });
        let dealt = LedgerMemory::deal(716 * MB, 64, 32 * MB, 60 * MB).expect("enough");
        assert_eq!(dealt.write_buffer_bytes, 358 * MB / 256);
        assert_eq!(LedgerMemory::deal(MB, 64, 32 * MB, 60 * MB), None);
    }
}
