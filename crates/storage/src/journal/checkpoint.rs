//! The checkpoint of an index on disk: up to which append it has seen the journal, and what the
//! journal's files held then.
//!
//! Layout: version u16, count u32, seq u64, next file id u32; then for each file id u32, salt u64,
//! length u64, records, tombstones, tombstone bytes, live records, live bytes, least seq, greatest
//! seq (u64 each), greatest tstamp u32, lost ranges u32; then CRC-32 of all that u32. All integers
//! are little-endian.

use super::data_file::{DataFile, FileCounters};
use super::format::le_at;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

const VERSION: u16 = 1;
const PREFIX_BYTES: usize = 18;
const FILE_BYTES: usize = 84;

/// A checkpoint; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The index has seen everything up to this `seq`.
    pub(crate) seq: u64,
    /// No file has had this id or a higher one.
    pub(crate) next_id: u32,
    pub(crate) files: BTreeMap<u32, FileState>,
}

/// The state of a data file at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) salt: u64,
    /// Bytes of the file that the index had seen, all of them on disk.
    pub(crate) length: u64,
    counts: [u64; 7],
    tstamp_max: u32,
    pub(crate) lost_ranges: u32,
}

impl FileState {
    /// The state of a file. The caller makes sure that nothing changes meanwhile.
    pub(super) fn of(file: &DataFile) -> Self {
        let counters = &file.counters;
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Acquire);
        Self {
            salt: file.salt,
            length: count(&counters.length),
            counts: [
                count(&counters.records),
                count(&counters.tombstones),
                count(&counters.tombstone_bytes),
                count(&counters.live_records),
                count(&counters.live_bytes),
                counters.seq_min(),
                count(&counters.seq_max),
            ],
            tstamp_max: counters.tstamp_max.load(Ordering::Acquire),
            lost_ranges: counters.lost_ranges.load(Ordering::Acquire),
        }
    }

    /// Whether the index pointed at versions in the file.
    pub(crate) fn is_in_use(&self) -> bool {
        self.counts[3] > 0
    }

    /// Sets the counters to this state.
    pub(super) fn restore(&self, counters: &FileCounters) {
        let [records, tombstones, tombstone_bytes, live_records, live_bytes, seq_min, seq_max] = self.counts;
        counters.length.store(self.length, Ordering::Release);
        counters.synced_length.store(self.length, Ordering::Release);
        counters.records.store(records, Ordering::Release);
        counters.tombstones.store(tombstones, Ordering::Release);
        counters.tombstone_bytes.store(tombstone_bytes, Ordering::Release);
        counters.live_records.store(live_records, Ordering::Release);
        counters.live_bytes.store(live_bytes, Ordering::Release);
        counters.widen_seqs(seq_min, seq_max);
        counters.tstamp_max.store(self.tstamp_max, Ordering::Release);
        counters.lost_ranges.store(self.lost_ranges, Ordering::Release);
    }
}

/// Whether these bytes are a valid checkpoint.
pub(crate) fn is_checkpoint(bytes: &[u8]) -> bool {
    Checkpoint::decode(bytes).is_some()
}

impl Checkpoint {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(PREFIX_BYTES + self.files.len() * FILE_BYTES + 4);
        out.put_u16_le(VERSION);
        out.put_u32_le(self.files.len() as u32);
        out.put_u64_le(self.seq);
        out.put_u32_le(self.next_id);
        for (id, file) in &self.files {
            out.put_u32_le(*id);
            out.put_u64_le(file.salt);
            out.put_u64_le(file.length);
            file.counts.iter().for_each(|count| out.put_u64_le(*count));
            out.put_u32_le(file.tstamp_max);
            out.put_u32_le(file.lost_ranges);
        }
        let crc = crc32fast::hash(&out);
        out.put_u32_le(crc);
        out.freeze()
    }

    /// None if the bytes are damaged or of another version. The index must be rebuilt then.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, crc) = bytes.split_last_chunk::<4>()?;
        if content.len() < PREFIX_BYTES
            || crc32fast::hash(content) != u32::from_le_bytes(*crc)
            || le_at!(u16, content, 0) != VERSION
        {
            return None;
        }
        let count = le_at!(u32, content, 2) as usize;
        if content.len() != PREFIX_BYTES + count * FILE_BYTES {
            return None;
        }
        let files = content[PREFIX_BYTES..].chunks_exact(FILE_BYTES).map(|file| {
            let count = |n: usize| le_at!(u64, file, 20 + n * 8);
            let state = FileState {
                salt: le_at!(u64, file, 4),
                length: le_at!(u64, file, 12),
                counts: std::array::from_fn(count),
                tstamp_max: le_at!(u32, file, 76),
                lost_ranges: le_at!(u32, file, 80),
            };
            (le_at!(u32, file, 0), state)
        });
        let checkpoint =
            Self { seq: le_at!(u64, content, 6), next_id: le_at!(u32, content, 14), files: files.collect() };
        (checkpoint.files.len() == count).then_some(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_checkpoint_comes_back_and_damage_shows() {
        let file = DataFile::new(7, 0xABCD, PathBuf::from("7"));
        file.counters.length.store(4000, Ordering::Relaxed);
        file.counters.count_record(true, 60, 5, 1_700_000_000);
        file.counters.count_record(false, 100, 9, 1_600_000_000);
        file.counters.add_live(100);
        file.counters.lost_ranges.store(1, Ordering::Relaxed);
        let state = FileState::of(&file);
        let files = BTreeMap::from([(7, state), (u32::MAX - 1, FileState { salt: 1, ..state })]);
        let checkpoint = Checkpoint { seq: 9, next_id: 8, files };
        let bytes = checkpoint.encode();
        assert_eq!(Checkpoint::decode(&bytes), Some(checkpoint));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::decode(&bad), None, "bit {bit}");
        }
        let again = DataFile::new(7, 0xABCD, PathBuf::from("7"));
        state.restore(&again.counters);
        assert_eq!(FileState::of(&again), state);
    }
}
