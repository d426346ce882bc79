use super::*;

fn write(fs: &FaultyFs, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = fs.open(Path::new(path), OpenMode::CreateNew).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

fn read(fs: &FaultyFs, path: &str) -> io::Result<Vec<u8>> {
    let file = fs.open(Path::new(path), OpenMode::Read)?;
    let mut bytes = vec![0; file.length()? as usize];
    file.read_at(&mut bytes, 0, ReadMode::Blocking)?;
    Ok(bytes)
}

#[test]
fn only_synced_bytes_under_synced_names_survive() {
    let fs = FaultyFs::new(1);
    let synced = write(&fs, "/a", b"kept");
    synced.sync_data().unwrap();
    write(&fs, "/b", b"not synced");
    fs.sync_dir(Path::new("/")).unwrap();
    synced.write_at(b" and lost", 4).unwrap();
    let nameless = write(&fs, "/c", b"without a name");
    nameless.sync_data().unwrap();
    fs.rename(Path::new("/a"), Path::new("/d")).unwrap();
    let after = fs.restart(Loss::Everything);
    assert_eq!(read(&after, "/a").unwrap(), b"kept");
    assert_eq!(read(&after, "/b").unwrap(), b"");
    assert_eq!(read(&after, "/c").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(read(&after, "/d").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(synced.sync_data().is_err(), "handles of before are dead");
}

#[test]
fn a_kill_loses_nothing() {
    let fs = FaultyFs::new(1);
    fs.create_dir_all(Path::new("/x/y")).unwrap();
    write(&fs, "/x/y/a", b"kept");
    fs.rename(Path::new("/x"), Path::new("/z")).unwrap();
    let after = fs.restart(Loss::Nothing);
    assert_eq!(read(&after, "/z/y/a").unwrap(), b"kept");
    assert_eq!(after.list(Path::new("/")).unwrap(), ["z"]);
}

#[test]
fn some_loss_is_any_mixture() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let fs = FaultyFs::new(seed);
        let file = write(&fs, "/a", &[1; 2 * SECTOR_BYTES]);
        file.sync_data().unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        file.write_at(&[2; 3 * SECTOR_BYTES], 0).unwrap();
        let bytes = read(&fs.restart(Loss::Some), "/a").unwrap();
        assert!(bytes.len() >= 2 * SECTOR_BYTES && bytes.len() <= 3 * SECTOR_BYTES);
        seen.insert((bytes[0], bytes[SECTOR_BYTES], bytes.get(2 * SECTOR_BYTES).copied()));
    }
    assert_eq!(seen.len(), 2 * 2 * 3, "{seen:?}");
}

#[test]
fn a_failed_sync_loses_pages_and_the_next_one_does_not_tell() {
    let mut lost = 0;
    for seed in 0..50 {
        let fs = FaultyFs::new(seed);
        let file = write(&fs, "/a", b"data");
        fs.sync_dir(Path::new("/")).unwrap();
        fs.fail_at(Call::SyncData, 1);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        assert_eq!(read(&fs, "/a").unwrap(), b"data");
        lost += u32::from(read(&fs.restart(Loss::Everything), "/a").unwrap() != b"data");
    }
    assert!((10..40).contains(&lost), "{lost}");
}

#[test]
fn full_disks_take_a_prefix_and_freeing_makes_room() {
    let fs = FaultyFs::new(1);
    let file = write(&fs, "/a", b"12345");
    fs.set_free_bytes(Some(3));
    assert_eq!(file.write_at(b"67890", 5).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(read(&fs, "/a").unwrap(), b"12345678");
    file.truncate(5).unwrap();
    file.write_at(b"678", 5).unwrap();
    assert_eq!(fs.free_bytes(Path::new("/")).unwrap(), 0);
    fs.remove_file(Path::new("/a")).unwrap();
    assert_eq!(fs.free_bytes(Path::new("/")).unwrap(), 8);
}

#[test]
fn power_goes_at_the_chosen_call() {
    let fs = FaultyFs::new(1);
    let file = write(&fs, "/a", b"x");
    fs.cut_power_at(2);
    file.sync_data().unwrap();
    assert!(file.sync_data().is_err());
    assert!(fs.is_off() && fs.list(Path::new("/")).is_err());
}
