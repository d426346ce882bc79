//! The files that the echo server appends to and reads from, like a store with one file for each
//! partition.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const FILES: u64 = 64;

/// A longer file is truncated and begun again, so that writes of the kernel to the disk do not slow
/// down the next measurement.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The approximate length of a record with a value of 1 KiB.
const RECORD_BYTES: usize = 1190;

pub struct Files(Vec<(File, AtomicU64)>);

impl Files {
    pub fn create(dir: &Path) -> io::Result<Self> {
        let create = |n: u64| {
            let path = dir.join(format!("{n}.echo"));
            let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
            Ok((file, AtomicU64::new(0)))
        };
        (0..FILES).map(create).collect::<io::Result<_>>().map(Self)
    }

    /// Appends a record with `bytes` to the file of this turn.
    pub fn append(&self, turn: u64, bytes: &[u8]) -> io::Result<()> {
        let (file, length) = self.file(turn);
        let mut record = [0; RECORD_BYTES];
        let taken = bytes.len().min(RECORD_BYTES);
        record[..taken].copy_from_slice(&bytes[..taken]);
        let at = length.fetch_add(RECORD_BYTES as u64, Ordering::Relaxed);
        if at > FILE_BYTES_MAX {
            length.store(0, Ordering::Relaxed);
            file.set_len(0)?;
        }
        file.write_all_at(&record, at)
    }

    /// Reads a record of the file of this turn.
    pub fn read(&self, turn: u64) -> io::Result<()> {
        let (file, length) = self.file(turn);
        let records = length.load(Ordering::Relaxed) / RECORD_BYTES as u64;
        let record = scattered(turn.wrapping_add(1)) % records.max(1);
        let mut room = [0; RECORD_BYTES];
        file.read_at(&mut room, record * RECORD_BYTES as u64).map(drop)
    }

    fn file(&self, turn: u64) -> &(File, AtomicU64) {
        &self.0[(scattered(turn) % FILES) as usize]
    }
}

fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_append_lies_behind_the_others_of_its_file() {
        let dir = std::env::temp_dir().join(format!("ombak-floor-files-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let files = Files::create(&dir).unwrap();
        files.read(1).unwrap();
        (0..1000).for_each(|turn| files.append(turn, b"record").unwrap());
        (0..1000).for_each(|turn| files.read(turn).unwrap());
        let written: u64 = files.0.iter().map(|(file, _)| file.metadata().unwrap().len()).sum();
        assert_eq!(written, 1000 * RECORD_BYTES as u64);
        assert!(files.0.iter().all(|(_, length)| length.load(Ordering::Relaxed) > 0), "all files are used");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
