//! How `leveldb.maximum_memory` is dealt out: write buffers and block cache of all partitions together.

use super::machine;
use super::problem::Problem;
use super::reader::Reader;

/// With `leveldb.limited_developer_mem`.
const DEVELOPER_BYTES: u64 = 64 << 20;
/// A partition that gathers less than this writes tables that are not worth it.
const WRITE_BUFFER_BYTES_MIN: u64 = 64 << 10;
/// Of each partition, in terms of what it gathers before it writes: it is twice that when writers have to wait for the
/// disk, and so is the buffer that is being written.
const WRITE_BUFFERS: u64 = 4;

/// What a backend with a ledger may have in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedgerMemory {
    /// What one partition gathers before it writes it.
    pub(super) write_buffer_bytes: u64,
    /// Blocks that are kept, of all partitions together.
    pub(super) cache_bytes: u64,
}

impl LedgerMemory {
    /// What `leveldb.*` says; `sharing` backends of the node share it.
    pub(super) fn of_leveldb(from: &Reader<'_>, sharing: u64) -> Result<Self, Problem> {
        let (key, bytes) = budget(from, sharing)?;
        let partitions = from.count::<u64>("ring_size")?;
        let threshold = from.bytes("leveldb.block_cache_threshold")?;
        let write_buffer_max = from.bytes("leveldb.write_buffer_size_max")?;
        Self::deal(bytes, partitions, threshold, write_buffer_max).ok_or_else(|| {
            let least = (2 * WRITE_BUFFERS * WRITE_BUFFER_BYTES_MIN * partitions * sharing).div_ceil(1 << 20);
            Problem::whole(format!(
                "{key} comes to {bytes} bytes for a backend, too few for {partitions} partitions: at least {least}MB are needed"
            ))
        })
    }

    /// Half to the write buffers, less where the cache would not have `threshold`; what they do not need is the cache's,
    /// too. None where the buffers would be too small to work.
    fn deal(bytes: u64, partitions: u64, threshold: u64, write_buffer_max: u64) -> Option<Self> {
        let for_buffers = (bytes / 2).min(bytes.saturating_sub(threshold)).max(bytes / 4);
        let share = for_buffers / (partitions.max(1) * WRITE_BUFFERS);
        let write_buffer_bytes = share.min(write_buffer_max.max(WRITE_BUFFER_BYTES_MIN));
        let cache_bytes = bytes - write_buffer_bytes * partitions * WRITE_BUFFERS;
        (share >= WRITE_BUFFER_BYTES_MIN / 2).then_some(Self { write_buffer_bytes, cache_bytes })
    }
}

/// The key that counts, and the bytes that it stands for.
fn budget(from: &Reader<'_>, sharing: u64) -> Result<(String, u64), Problem> {
    let (key, bytes) = if from.flag("leveldb.limited_developer_mem")? {
        ("leveldb.limited_developer_mem", DEVELOPER_BYTES)
    } else if let Ok(bytes) = from.bytes("leveldb.maximum_memory") {
        ("leveldb.maximum_memory", bytes)
    } else {
        let percent = from.count::<u64>("leveldb.maximum_memory.percent")?;
        ("leveldb.maximum_memory.percent", machine::memory_bytes() / 100 * percent)
    };
    let counts = from.key(key);
    // What was said for one backend is its own.
    let bytes = if counts == key { bytes / sharing } else { bytes };
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
