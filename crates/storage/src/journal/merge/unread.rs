//! What a merge makes of places that the disk does not give back.
//!
//! The merge goes on with everything else. The input file stays, because it has the only copy of
//! these versions that this store knows of. Its owner learns which keys they are, so that they are
//! written anew from another replica; then nothing in the file is current.

use crate::error::StorageError;
use crate::fold::Scope;
use crate::journal::data_file::DataFile;
use crate::journal::index::KeyIndex;
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many keys are told at most. Others are found by the next merge, or by their readers.
const TOLD_MAX: usize = 10_000;

impl<P: JournalPolicy> Core<P> {
    /// Notes that a merge had to skip blocks of a file. Fails if there are so many that the disk
    /// fails as a whole.
    pub(super) fn note_unread_blocks(
        &self,
        file: &DataFile,
        blocks: BTreeMap<u64, io::Error>,
    ) -> Result<(), StorageError> {
        for (offset, source) in blocks {
            file.has_unread_part.store(true, Ordering::Relaxed);
            let error = self.judge_media_error(Some(file.id), file.media_error(offset, source));
            tracing::error!(partition = self.partition, %error, "a merge skips what it cannot read");
            if !error.is_unreadable_version() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tells the observer of the current versions that are left in files of which a merge has
    /// copied everything else.
    pub(super) fn tell_unread_versions(&self, files: &[Arc<DataFile>]) -> Result<(), StorageError> {
        let mut view = {
            // No put is between its append and its index entry.
            let writer = self.writer.lock();
            self.index.view(writer.last_seq())?
        };
        let mut left: Vec<Bytes> = Vec::new();
        let walked = self.index.walk(&mut view, &Scope::KEPT, |key, found| {
            if files.iter().any(|file| file.id == found.entry.position.file_id) {
                left.push(Bytes::copy_from_slice(key));
            }
            left.len() < TOLD_MAX
        });
        self.index.end_view(&view);
        left.iter().for_each(|key| self.unreadable.tell(key));
        walked
    }
}
