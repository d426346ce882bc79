//! The inventory of a store that begins with files from a backup.

use super::copies::InventoryCopies;
use super::record::{Inventory, PromisedFile};
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, OpenMode};
use crate::identity::random_id;
use crate::journal::format::{FILE_HEADER_BYTES, FileHeader};
use crate::journal::{begin_restored_identity, data_path, parse_name};
use std::collections::BTreeMap;
use std::path::Path;

/// Makes a store out of a directory that the files of a backup were put into. Its first start finds
/// it restored, and fails if one of those files has disappeared. `seq`: no append in it has a
/// higher number. The files are on disk already.
pub fn begin_restored(fs: &dyn FileSystem, dir: &Path, seq: u64) -> Result<(), StorageError> {
    begin_restored_identity(fs, dir, seq)?;
    let mut files = BTreeMap::new();
    let names = fs.list(dir).map_err(|source| io_error("list", dir, source))?;
    for (id, _) in names.iter().filter_map(|name| parse_name(name)).filter(|(_, is_unsynced)| !is_unsynced) {
        let path = data_path(dir, id);
        let failed = |source| io_error("read", &path, source);
        let file = fs.open(&path, OpenMode::Read).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let mut header = [0; FILE_HEADER_BYTES];
        let read = file.read_at(&mut header, 0, ReadMode::Blocking).map_err(failed)?;
        // A file with an unreadable header was damaged when the backup was taken.
        let Ok(header) = FileHeader::decode(&header[..read]) else { continue };
        files.insert(id, PromisedFile { salt: header.salt, length, is_sealed: true });
    }
    let inventory = Inventory { lineage: random_id(fs.machine(), dir)?, generation: 1, files, ..Inventory::default() };
    InventoryCopies::of(dir, 0, None).write_store(fs, &inventory)
}
