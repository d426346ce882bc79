//! Bad sectors: places of a disk of which reads fail with EIO from some moment on.
//!
//! Some seeds have them. They draw from a stream of random numbers of their own, and the other
//! seeds do not know of them, so all seeds without bad sectors stay what they were before.

use crate::faults::{FaultKind, Nemesis};
use crate::random::Random;
use crate::world::OUTSIDE;
use ombak_runtime::RuntimeExt;
use ombak_storage::fs::sim::FaultyFs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// What tells the random numbers of bad sectors from others of the same seed.
const STREAM: u64 = 0x0BAD_5EC7_0125_0000;
/// The pause between two bad sectors, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 200..2_500;
/// What a disk loses together.
const BLOCK_BYTES: u64 = 4096;
/// How many there are at most. More than 32 within a minute would fail a store as a whole.
const SECTORS_MAX: u32 = 40;

/// Whether the disks of a seed get bad sectors.
pub(crate) const fn happen_in(seed: u64) -> bool {
    matches!(seed % 10, 4 | 7)
}

/// Spoils the block with some bit of a file, if the file has all of that block: what is appended
/// later must not lie in it, because a disk would find another place for it.
pub(crate) fn spoil(disk: &FaultyFs, path: &Path, bit: u64) -> io::Result<()> {
    let byte = bit / 8;
    if (byte / BLOCK_BYTES + 1) * BLOCK_BYTES > disk.length(path)? {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    disk.set_unreadable(path, byte..byte + 1)
}

impl Nemesis {
    /// Spoils sectors of the disks with stores until `is_over`.
    pub(crate) async fn spoil_sectors(self, seed: u64, is_over: impl Fn() -> bool + Send) {
        let mut random = Random::new(seed ^ STREAM);
        let runtime = self.world.runtime(OUTSIDE);
        for _ in 0..SECTORS_MAX {
            runtime.sleep(Duration::from_millis(random.within(PAUSE_MS))).await;
            if is_over() {
                return;
            }
            if self.begin(FaultKind::BadSector, &mut random).is_some() {
                let number = self.count(FaultKind::BadSector);
                self.note_begin(FaultKind::BadSector, number);
            }
        }
    }
}
