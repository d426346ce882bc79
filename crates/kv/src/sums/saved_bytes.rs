//! The parts of which saved sums and saved trees consist. Integers are little-endian.

use super::run::StoreRun;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) fn put_u32(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_count(bytes: &mut Vec<u8>, count: usize) {
    put_u32(bytes, u32::try_from(count).unwrap_or(u32::MAX));
}

/// A run: count of stores u32, for each its id and boot u64; last seq, keys, lost ranges u64.
pub(crate) fn put_run(bytes: &mut Vec<u8>, run: &StoreRun) {
    put_count(bytes, run.stores.len());
    for (id, boot) in &run.stores {
        put_u64(bytes, *id);
        put_u64(bytes, *boot);
    }
    [run.last_seq, run.keys, run.lost_ranges].iter().for_each(|n| put_u64(bytes, *n));
}

/// Ends the bytes with the XXH3 hash of all of them.
pub(crate) fn put_hash(bytes: &mut Vec<u8>) {
    let hash = xxh3_64(bytes);
    put_u64(bytes, hash);
}

/// What is left to decode.
pub(crate) struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// What stands between this magic and the hash. None if the hash or the magic differs.
    pub(crate) fn of(bytes: &'a [u8], magic: &[u8]) -> Option<Self> {
        let (content, hash) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(content) != u64::from_le_bytes(*hash) {
            return None;
        }
        content.strip_prefix(magic).map(Self)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn run(&mut self) -> Option<StoreRun> {
        let mut stores = Vec::new();
        for _ in 0..self.u32()? {
            stores.push((self.u64()?, self.u64()?));
        }
        Some(StoreRun { stores, last_seq: self.u64()?, keys: self.u64()?, lost_ranges: self.u64()? })
    }
}
