use super::*;
use crate::fs::read_file;
use crate::fs::sim::{FaultyFs, Loss};

const DIR: &str = "/store";

fn load(fs: &Arc<FaultyFs>, content: StoreContent) -> IdentityFile {
    IdentityFile::load(fs.clone(), Path::new(DIR), content, None, FoundAppends::default()).unwrap()
}

fn begun(fs: &Arc<FaultyFs>) -> IdentityFile {
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    let file = load(fs, StoreContent::Data);
    file.begin(0).unwrap();
    file
}

#[test]
fn every_bit_of_the_file_is_checked() {
    let record = Record {
        store_id: 1 << 60,
        boot: 7,
        is_clean: true,
        is_restored: true,
        has_failed: true,
        has_openings: true,
        lost_writes_boot: 3,
        seq: 99,
        base: base_after(99),
        machine: Some(1 << 100),
    };
    let file_identity = FileIdentity { inode: 5, created_ns: 6 };
    let bytes = record.encode(file_identity);
    assert_eq!(bytes.len(), CONTENT_BYTES + 4);
    assert_eq!(Record::decode(&bytes, Path::new("f")).unwrap(), Some((record, file_identity)));
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Record::decode(&bad, Path::new("f")).unwrap(), None, "bit {bit}");
    }
    let mut newer = bytes[..CONTENT_BYTES].to_vec();
    newer[8] = 2;
    newer.extend_from_slice(&crc32fast::hash(&newer).to_le_bytes());
    let text = Record::decode(&newer, Path::new("f")).unwrap_err().to_string();
    assert!(text.contains("format 2"), "{text}");
}

#[test]
fn a_start_knows_how_the_run_before_ended() {
    let fs = FaultyFs::new(1);
    let first = begun(&fs).identity();
    assert!(first.is_restored, "data, and nothing that says whose");
    assert_eq!((first.boot, first.was_clean, first.lost_writes_boot), (1, false, None));
    let killed = begun(&fs.restart(Loss::Nothing)).identity();
    assert_eq!((killed.store_id, killed.boot, killed.lost_writes_boot), (first.store_id, 2, None));
}

#[test]
fn the_tail_is_lost_with_the_power_and_never_after_a_clean_end() {
    let fs = FaultyFs::new(1);
    begun(&fs).end(40).unwrap();
    let fs = fs.restart(Loss::Everything);
    let clean = begun(&fs);
    let identity = clean.identity();
    assert_eq!((identity.boot, identity.was_clean, identity.lost_writes_boot, clean.seq()), (2, true, None, 40));
    let fs = fs.restart(Loss::Everything);
    let lost = begun(&fs).identity();
    assert_eq!((lost.boot, lost.was_clean, lost.lost_writes_boot), (3, false, Some(3)));
    assert!(lost.has_lost_writes());
    let later = begun(&fs.restart(Loss::Nothing)).identity();
    assert_eq!((later.boot, later.lost_writes_boot, later.has_lost_writes()), (4, Some(3), false));
}

#[test]
fn a_failed_sync_is_as_bad_as_a_loss_of_power() {
    let fs = FaultyFs::new(1);
    begun(&fs).note_failure();
    let fs = fs.restart(Loss::Nothing);
    assert_eq!(begun(&fs).identity().lost_writes_boot, Some(2));
    assert_eq!(begun(&fs).identity().lost_writes_boot, Some(2), "that was noted once");
}

#[test]
fn a_clean_mark_serves_one_start_wherever_the_power_goes() {
    for call in 1..20 {
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            let fs = FaultyFs::new(call);
            begun(&fs).end(1).unwrap();
            fs.cut_power_at(call);
            let second =
                IdentityFile::load(fs.clone(), Path::new(DIR), StoreContent::Data, None, FoundAppends::default());
            let begun = second.is_ok_and(|second| second.begin(0).is_ok());
            let third = load(&fs.restart(loss), StoreContent::Data).identity();
            assert!(!begun || (third.boot, third.was_clean) == (3, false), "call {call}, {loss:?}: {third:?}");
            assert!(third.was_clean == (third.boot == 2), "call {call}, {loss:?}: {third:?}");
        }
    }
}

#[test]
fn a_copy_is_another_store() {
    let fs = FaultyFs::new(1);
    let first = begun(&fs);
    first.end(9).unwrap();
    let path = Path::new(DIR).join(NAME);
    let bytes = read_file(&*fs, &path, 1000).unwrap();
    fs.remove_file(&path).unwrap();
    crate::fs::replace_file(&*fs, &path, &bytes).unwrap();
    let copy = load(&fs, StoreContent::Data);
    let identity = copy.identity();
    assert_ne!(identity.store_id, first.identity().store_id);
    assert_eq!((identity.boot, identity.was_clean, identity.is_restored, copy.seq()), (1, false, true, 9));
}

#[test]
fn a_damaged_file_makes_a_new_store_and_an_empty_directory_one_that_is_new() {
    let fs = FaultyFs::new(1);
    begun(&fs).end(1).unwrap();
    fs.flip_bit(&Path::new(DIR).join(NAME), 200).unwrap();
    assert!(load(&fs, StoreContent::Data).identity().is_restored);
    let fs = FaultyFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let empty = load(&fs, StoreContent::Directory);
    assert!(empty.identity().is_new() && empty.identity().boot == 0);
    empty.begin(0).unwrap();
    assert!(empty.identity().is_new() && empty.identity().boot == 1);
    assert!(!load(&fs, StoreContent::Directory).identity().is_new());
}

#[test]
fn a_restored_store_says_so_at_every_start() {
    let fs = FaultyFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    begin_restored(&*fs, Path::new(DIR), 77).unwrap();
    for boot in 1..4 {
        let file = begun(&fs);
        let identity = file.identity();
        assert_eq!((identity.boot, identity.is_restored, identity.was_clean), (boot, true, false));
        assert_eq!((file.seq(), identity.lost_writes_boot), (77, None));
    }
}

/// The base that a start finds on the disk and the one that it counts from.
fn bases(fs: &Arc<FaultyFs>) -> (u64, u64) {
    let on_disk = read(&**fs, &identity_path(Path::new(DIR))).unwrap().flatten().map_or(0, |(record, _)| record.base);
    (on_disk, load(fs, StoreContent::Data).base())
}

#[test]
fn a_run_that_did_not_end_in_order_may_have_used_all_numbers_up_to_the_next_base() {
    let fs = FaultyFs::new(1);
    let first = begun(&fs).base();
    assert_eq!(first, base_after(0), "there was data");
    let fs = fs.restart(Loss::Everything);
    assert_eq!(bases(&fs), (first, base_after(first)));
    begun(&fs).end(40).unwrap();
    let fs = fs.restart(Loss::Everything);
    assert_eq!(bases(&fs), (first, base_after(first)), "no append shows that the lost numbers are used");
    let third = begun(&fs);
    let last = third.base() + 40;
    third.end(last).unwrap();
    assert_eq!(bases(&fs.restart(Loss::Everything)), (0, base_after(last)), "all numbers were found");
}

#[test]
fn a_new_store_counts_from_0_and_its_next_start_skips_numbers() {
    let fs = FaultyFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let new = load(&fs, StoreContent::Directory);
    assert_eq!(new.base(), 0);
    new.begin(0).unwrap();
    assert_eq!(load(&fs, StoreContent::Directory).base(), base_after(0), "its appends may be lost");
}

#[test]
fn the_base_of_all_stores_of_a_partition_is_on_disk_before_the_first_append() {
    let base = base_after(1 << 40);
    let fs = FaultyFs::new(1);
    let file = begun(&fs);
    assert!(!file.may_append(), "other stores of the partition may be opened after this one");
    let writes = fs.calls_of(crate::fs::sim::Call::Write);
    file.allow_appends_after(file.base(), None).unwrap();
    assert!(file.may_append());
    assert_eq!(fs.calls_of(crate::fs::sim::Call::Write), writes, "it is there already");
    let file = begun(&fs);
    fs.fail_at(crate::fs::sim::Call::Write, 1);
    assert!(file.allow_appends_after(base, None).is_err() && !file.may_append());
    file.allow_appends_after(base, None).unwrap();
    assert!(file.may_append());
    assert_eq!(bases(&fs.restart(Loss::Everything)), (base, base_after(base)));
    let fs = FaultyFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    load(&fs, StoreContent::Directory).begin(base).unwrap();
    assert_eq!(bases(&fs.restart(Loss::Everything)).0, base, "a new store beside others");
}

/// Earlier versions of this program write 0 in place of the base, and do not read it.
#[test]
fn a_file_of_an_earlier_version_has_no_base() {
    let fs = FaultyFs::new(1);
    let file = begun(&fs);
    file.change(|record| (record.base, record.seq) = (0, 70)).unwrap();
    assert_eq!(bases(&fs), (0, base_after(70)));
}
