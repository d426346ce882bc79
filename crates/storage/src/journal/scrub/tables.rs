//! Reads the tables that an index has on disk, and compares each with its checksum.
//!
//! A table has one checksum over the whole file, so the checksum so far is kept from one step to
//! the next. After a restart the table is read from its beginning again. The library that has
//! written the tables opens them by itself, on the real file system, and so does this module.

use super::StepEnd;
use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::fs::{FileSystem, RealFs, is_media_error, read_at_twice};
use crate::journal::index::{IndexDamage, IndexTable, KeyIndex};
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use crate::scrub::{DamagedPlace, ScrubStep};
use std::io;
use xxhash_rust::xxh3::Xxh3Default;

/// Bytes that are read at once.
const WINDOW_BYTES: usize = 256 << 10;

/// The checksum of the beginning of a table.
pub(super) struct TableProgress {
    number: u64,
    offset: u64,
    hasher: Xxh3Default,
}

/// How the reading of a table has ended.
enum Ended {
    /// The step is over.
    NotYet,
    Whole(u128),
    /// The disk does not give back what lies at this offset.
    Unreadable(u64, io::Error),
}

impl<P: JournalPolicy> Core<P> {
    /// Reads on in the tables, until the step is over or all are read.
    pub(super) fn scrub_tables(&self, step: &mut ScrubStep, end: &StepEnd<'_>) -> Result<(), StorageError> {
        if step.next.lap == 0
            && let Some(damage) = self.index.check_tables_list()?
        {
            self.met_index_damage(&[damage], step);
        }
        let found = self.index.tables_on_disk();
        let numbers: Vec<u64> = found.tables.iter().map(|table| table.number).collect();
        let next = step.next.next_of(&numbers);
        let Some(table) = next.and_then(|next| found.tables.iter().find(|table| table.number == next)) else {
            step.is_round_over = true;
            return Ok(());
        };
        let damage = match self.read_table(table, step, end)? {
            Ended::NotYet => return Ok(()),
            Ended::Whole(checksum) if checksum == table.checksum => Vec::new(),
            Ended::Whole(_) => {
                let failed = |source| StorageError::Io { op: "read", path: table.path.clone(), source };
                P::Index::damaged_blocks(&table.path).map_err(failed)?
            }
            Ended::Unreadable(offset, error) => {
                step.unread_blocks += 1;
                tracing::error!(file = %table.path.display(), offset, %error, "the disk does not give back a part of it");
                let what = "the disk gives an error";
                vec![IndexDamage { file: table.path.clone(), offset, length: 0, what }]
            }
        };
        self.met_index_damage(&damage, step);
        step.next.pass_file();
        Ok(())
    }

    /// Goes on with the checksum of a table.
    fn read_table(&self, table: &IndexTable, step: &mut ScrubStep, end: &StepEnd<'_>) -> Result<Ended, StorageError> {
        let failed = |source| StorageError::Io { op: "read", path: table.path.clone(), source };
        let file = RealFs.open_uncached(&table.path).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let earlier = self.scrub.table.lock().take();
        let is_earlier = |earlier: &TableProgress| (earlier.number, earlier.offset) == (table.number, step.next.offset);
        let mut progress = earlier.filter(is_earlier).unwrap_or_else(|| TableProgress {
            number: table.number,
            offset: 0,
            hasher: Xxh3Default::new(),
        });
        let mut window = vec![0; WINDOW_BYTES];
        while progress.offset < length {
            let wanted = WINDOW_BYTES.min((length - progress.offset) as usize);
            let part = &mut window[..wanted];
            match read_at_twice(&*file, part, progress.offset, ReadMode::Blocking) {
                Ok(count) if count == wanted => progress.hasher.update(part),
                Ok(_) => return Ok(Ended::Unreadable(progress.offset, io::ErrorKind::UnexpectedEof.into())),
                Err(error) if is_media_error(&error) => return Ok(Ended::Unreadable(progress.offset, error)),
                Err(error) => return Err(failed(error)),
            }
            progress.offset += wanted as u64;
            step.bytes_read += wanted as u64;
            if progress.offset < length && self.is_step_over(step, end) {
                step.next.offset = progress.offset;
                *self.scrub.table.lock() = Some(progress);
                return Ok(Ended::NotYet);
            }
        }
        Ok(Ended::Whole(progress.hasher.digest128()))
    }

    /// Notes damage for the next start of the index.
    fn met_index_damage(&self, damage: &[IndexDamage], step: &mut ScrubStep) {
        let Some(first) = damage.first() else { return };
        let becomes = self.index.note_damage_on_disk(first);
        for IndexDamage { file, offset, length, what } in damage {
            let what = format!("{what}: {becomes}");
            step.found.add_place(DamagedPlace { file: file.clone(), offset: *offset, length: *length, what });
        }
    }
}
