//! Small files that are read and replaced as a whole.

use super::{FileSystem, OpenMode};
use crate::backend::ReadMode;
use std::io;
use std::path::{Path, PathBuf};

/// Reads a file of at most `bytes_max` bytes; a longer one is an error of the kind `InvalidData`.
pub fn read_file(fs: &dyn FileSystem, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = fs.open(path, OpenMode::Read)?;
    let length = file.length()?;
    if length > bytes_max {
        let what = format!("{length} bytes long, and at most {bytes_max} are expected");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut bytes = vec![0; length as usize];
    let count = file.read_at(&mut bytes, 0, ReadMode::Blocking)?;
    if count == bytes.len() { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Replaces or creates a file. The new content is on disk when this returns; after an error, either
/// the old or the new content is there.
pub fn replace_file(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_file_with(fs, path, |_| Ok(bytes.to_vec()))
}

/// Like [`replace_file`], for content that depends on the new file itself. `content` gets the
/// temporary path of the new file, which is renamed afterwards.
pub fn replace_file_with(
    fs: &dyn FileSystem,
    path: &Path,
    content: impl FnOnce(&Path) -> io::Result<Vec<u8>>,
) -> io::Result<()> {
    let new = new_path(path);
    match fs.remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let write = || {
        let file = fs.open(&new, OpenMode::CreateNew)?;
        file.write_at(&content(&new)?, 0)?;
        file.sync_data()?;
        fs.rename(&new, path)
    };
    if let Err(error) = write() {
        // On a full disk, each byte counts.
        let _ = fs.remove_file(&new);
        return Err(error);
    }
    match path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => fs.sync_dir(dir),
        None => fs.sync_dir(Path::new(".")),
    }
}

/// The name of a file until it is complete.
fn new_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::{FaultyFs, Loss};

    #[test]
    fn a_file_is_the_old_or_the_new_one_wherever_the_power_goes() {
        let path = Path::new("/dir/file");
        for call in 1..12 {
            for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
                let fs = FaultyFs::new(call);
                fs.create_dir_all(Path::new("/dir")).unwrap();
                fs.sync_dir(Path::new("/")).unwrap();
                replace_file(&*fs, path, b"old").unwrap();
                fs.cut_power_at(call);
                let replaced = replace_file(&*fs, path, b"new").is_ok();
                let fs = fs.restart(loss);
                let found = read_file(&*fs, path, 10).unwrap();
                assert!(found == b"new" || (found == b"old" && !replaced), "call {call}, {loss:?}: {found:?}");
                replace_file(&*fs, path, b"third").unwrap();
                assert_eq!(read_file(&*fs, path, 5).unwrap(), b"third");
                assert_eq!(read_file(&*fs, path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
            }
        }
    }
}
