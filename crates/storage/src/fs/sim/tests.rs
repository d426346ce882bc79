use super::disk::SECTOR_BYTES;
use super::*;
use crate::backend::ReadMode;
use std::collections::BTreeSet;

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

#[test]
fn writes_tear_within_a_sector_too() {
    let torn = (0..100).filter(|seed| {
        let fs = FaultyFs::new(*seed);
        let file = write(&fs, "/a", &[1; SECTOR_BYTES]);
        file.sync_data().unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        file.write_at(&[2; SECTOR_BYTES], 0).unwrap();
        let bytes = read(&fs.restart(Loss::Some), "/a").unwrap();
        let new = bytes.iter().take_while(|byte| **byte == 2).count();
        assert!(bytes[new..].iter().all(|byte| *byte == 1));
        (1..SECTOR_BYTES).contains(&new)
    });
    assert!(torn.count() > 3);
}

#[test]
fn short_transfers_are_continued() {
    let fs = FaultyFs::new(1);
    fs.set_transfers_are_short(true);
    let content: Vec<u8> = (0..2000u32).map(|n| n as u8).collect();
    write(&fs, "/a", &content);
    assert_eq!(read(&fs, "/a").unwrap(), content);
    assert!(fs.calls_of(Call::Write) > 2 && fs.calls_of(Call::Read) > 2);
}

#[test]
fn a_read_may_end_before_the_file_does() {
    let fs = FaultyFs::new(1);
    write(&fs, "/a", &[7; 100]);
    let file = fs.open(Path::new("/a"), OpenMode::Read).unwrap();
    fs.end_read_early_at(1);
    let mut buffer = [0; 100];
    assert_eq!(file.read_at(&mut buffer, 0, ReadMode::Blocking).unwrap(), 0);
    assert_eq!(file.read_at(&mut buffer, 0, ReadMode::Blocking).unwrap(), 100);
}

#[test]
fn a_misdirected_write_is_somewhere_else() {
    let mut elsewhere = 0;
    for seed in 0..50 {
        let fs = FaultyFs::new(seed);
        let one = write(&fs, "/one", &[1; 3 * SECTOR_BYTES]);
        write(&fs, "/two", &[2; 3 * SECTOR_BYTES]);
        fs.misdirect_write_at(1);
        one.write_at(&[9; 100], 3 * SECTOR_BYTES as u64).unwrap();
        let (one, two) = (read(&fs, "/one").unwrap(), read(&fs, "/two").unwrap());
        assert_eq!((one.len(), two.len()), (3 * SECTOR_BYTES + 100, 3 * SECTOR_BYTES));
        assert_eq!(one[3 * SECTOR_BYTES..], [0; 100], "the place of the write has nothing of it");
        elsewhere += u32::from(one.contains(&9) || two.contains(&9));
    }
    assert!(elsewhere > 30, "{elsewhere}");
}

#[test]
fn held_calls_wait_and_cached_reads_do_not() {
    let fs = FaultyFs::new(1);
    let file = write(&fs, "/a", b"x");
    for call in [Call::Read, Call::SyncData] {
        fs.hold(call);
    }
    std::thread::scope(|scope| {
        let read = scope.spawn(|| file.read_at(&mut [0], 0, ReadMode::Blocking));
        let sync = scope.spawn(|| file.sync_data());
        fs.wait_for_held(Call::Read);
        fs.wait_for_held(Call::SyncData);
        let cached = file.read_at(&mut [0], 0, ReadMode::Cached);
        assert_eq!(cached.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        file.write_at(b"y", 0).unwrap();
        fs.release(Call::SyncData);
        sync.join().unwrap().unwrap();
        fs.release(Call::Read);
        assert_eq!(read.join().unwrap().unwrap(), 1);
    });
}
