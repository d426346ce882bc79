//! Tests that write directories in Riak's format and read them.

use super::writer::FileWriter;
use super::*;
use std::fs;
use std::path::Path;

const A: &[u8] = b"\x02\x00\x01ba";
const B: &[u8] = b"\x02\x00\x01bb";
const C: &[u8] = b"\x02\x00\x01bc";

fn read(dir: &Path) -> (Vec<(Vec<u8>, String)>, Vec<Fault>) {
    let dir = PartitionDir::open(dir).unwrap();
    let latest = dir.load_latest(&|| false).unwrap();
    let mut records = dir.records(&latest, None);
    let (mut versions, mut faults) = (Vec::new(), Vec::new());
    while let Some(event) = records.next_event() {
        match event {
            Event::Version(v) => versions.push((v.key.to_vec(), String::from_utf8_lossy(&v.value).into_owned())),
            Event::Fault(fault) => faults.push(fault),
        }
    }
    assert_eq!(records.bytes_done(), dir.files().iter().map(|f| f.bytes).sum::<u64>());
    versions.sort();
    (versions, faults)
}

fn found(pairs: &[(&[u8], &str)]) -> Vec<(Vec<u8>, String)> {
    pairs.iter().map(|(key, value)| (key.to_vec(), (*value).to_owned())).collect()
}

/// Runs a check on the same files with hint files, with old hint files, without any, and with
/// damaged ones.
fn with_all_hints(files: &[FileWriter], check: impl Fn(&Path, &str)) {
    for how in ["hints", "old hints", "no hints", "broken hints"] {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let file = if how == "old hints" { file.clone().without_tombstone_marks() } else { file.clone() };
            let path = if how == "no hints" { file.save_data(dir.path()) } else { file.save(dir.path()) }.unwrap();
            if how == "broken hints" {
                let hint = path.with_extension("hint");
                let mut bytes = fs::read(&hint).unwrap();
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                fs::write(&hint, bytes).unwrap();
            }
        }
        check(dir.path(), how);
    }
}

#[test]
fn the_last_value_of_each_key_counts() {
    let (mut one, mut two) = (FileWriter::new(1), FileWriter::new(2));
    one.put(10, A, b"old");
    one.put(10, B, b"b");
    one.put(10, A, b"newer");
    two.tombstone(2, 11, A, 1);
    two.put(11, A, b"newest");
    with_all_hints(&[one, two], |dir, how| {
        assert_eq!(read(dir), (found(&[(A, "newest"), (B, "b")]), vec![]), "{how}");
    });
}

#[test]
fn files_are_ordered_by_number_and_not_by_name() {
    let (mut nine, mut ten) = (FileWriter::new(9), FileWriter::new(10));
    nine.put(10, A, b"first");
    ten.put(10, A, b"second");
    with_all_hints(&[ten, nine], |dir, how| assert_eq!(read(dir).0, found(&[(A, "second")]), "{how}"));
}

#[test]
fn a_removed_key_stays_removed_whatever_the_tombstone() {
    for version in 0..=2 {
        let (mut one, mut two) = (FileWriter::new(1), FileWriter::new(2));
        one.put(10, A, b"a");
        one.put(10, B, b"b");
        if version == 0 {
            two.tombstone_v0(10, A);
        } else {
            two.tombstone(version, 10, A, if version == 1 { 2 } else { 1 });
        }
        with_all_hints(&[one, two], |dir, how| {
            assert_eq!(read(dir), (found(&[(B, "b")]), vec![]), "version {version}, {how}");
        });
    }
}

#[test]
fn a_key_that_was_written_again_is_there() {
    let mut one = FileWriter::new(1);
    one.put(10, A, b"a");
    one.tombstone(2, 10, A, 1);
    one.put(10, A, b"again");
    with_all_hints(&[one], |dir, how| assert_eq!(read(dir).0, found(&[(A, "again")]), "{how}"));
}

/// A merge has copied the tombstone of a replaced record to a place after the value that replaced
/// it.
#[test]
fn a_tombstone_carried_along_by_a_merge_does_not_remove_a_newer_value() {
    let (mut one, mut four, mut five) = (FileWriter::new(1), FileWriter::new(4), FileWriter::new(5));
    one.put(10, A, b"replaced");
    four.put(11, A, b"value");
    five.tombstone(2, 11, A, 1);
    for hints in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        for file in [&one, &four, &five] {
            if hints { file.save(dir.path()) } else { file.save_data(dir.path()) }.unwrap();
        }
        assert_eq!(read(dir.path()).0, found(&[(A, "value")]), "hints {hints}");
    }
}

#[test]
fn a_merged_old_record_in_a_later_file_is_still_old() {
    let (mut two, mut three) = (FileWriter::new(2), FileWriter::new(3));
    two.put(20, A, b"newer");
    three.put(10, A, b"older");
    with_all_hints(&[two, three], |dir, how| assert_eq!(read(dir).0, found(&[(A, "newer")]), "{how}"));
}

#[test]
fn both_forms_of_a_key_are_one_key() {
    let bucket = ombak_types::Bucket::untyped("b");
    let mut one = FileWriter::new(1);
    one.put(10, &key::encode_v0(&bucket, b"a"), b"before the upgrade");
    one.put(11, A, b"after");
    with_all_hints(&[one], |dir, how| assert_eq!(read(dir).0, found(&[(A, "after")]), "{how}"));
}

#[test]
fn rotten_records_cost_themselves_and_are_named() {
    let mut one = FileWriter::new(1);
    one.put(10, A, b"a");
    let at = one.put(10, B, b"rotten");
    let end = one.put(10, C, b"c");
    with_all_hints(&[one], |dir, how| {
        let path = dir.join("1.bitcask.data");
        let mut bytes = fs::read(&path).unwrap();
        bytes[end as usize - 1] ^= 0x40;
        fs::write(&path, bytes).unwrap();
        let (versions, faults) = read(dir);
        assert_eq!(versions, found(&[(A, "a"), (C, "c")]), "{how}");
        let what = "the record does not match its checksum";
        assert_eq!(faults, [Fault { file: path, offset: at, bytes: end - at, what }], "{how}");
    });
}

#[test]
fn a_torn_tail_is_named_and_the_rest_is_read() {
    let mut one = FileWriter::new(1);
    one.put(10, A, b"a");
    let at = one.put(10, B, b"torn");
    with_all_hints(&[one], |dir, how| {
        let path = dir.join("1.bitcask.data");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();
        let (versions, faults) = read(dir);
        assert_eq!(versions, found(&[(A, "a")]), "{how}");
        assert_eq!((faults.len(), faults[0].offset), (1, at), "{how}");
    });
}

#[test]
fn what_a_hint_file_does_not_cover_is_read_from_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = FileWriter::new(1);
    one.put(10, A, b"hinted");
    one.save(dir.path()).unwrap();
    one.put(11, B, b"not hinted");
    one.save_data(dir.path()).unwrap();
    assert_eq!(read(dir.path()).0, found(&[(A, "hinted"), (B, "not hinted")]));
}

#[test]
fn files_marked_for_deletion_do_not_count() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (FileWriter::new(1), FileWriter::new(2));
    one.put(10, A, b"gone");
    two.put(10, B, b"b");
    let marked = one.save(dir.path()).unwrap();
    two.save(dir.path()).unwrap();
    fs::set_permissions(&marked, fs::Permissions::from_mode(0o4644)).unwrap();
    assert_eq!(read(dir.path()).0, found(&[(B, "b")]));
}

#[test]
fn reading_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    for id in 1..=3 {
        let mut file = FileWriter::new(id);
        for n in 0..10u32 {
            file.put(10, format!("\x02\0\x01b{id}-{n}").as_bytes(), b"value");
        }
        file.save(dir.path()).unwrap();
    }
    let dir = PartitionDir::open(dir.path()).unwrap();
    let latest = dir.load_latest(&|| false).unwrap();
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let mut records = dir.records(&latest, cursor);
        let Some(Event::Version(version)) = records.next_event() else { break };
        seen.push(version.key);
        cursor = records.cursor();
    }
    assert_eq!((seen.len(), latest.keys()), (30, 30));
    assert!(seen.is_sorted());
}

/// Loading is what takes longest before the first record of a large partition comes.
#[test]
fn loading_ends_early_when_it_is_told_to_stop() {
    for hints in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut file = FileWriter::new(1);
        for n in 0..1_000u32 {
            file.put(10, format!("\x02\0\x01b{n}").as_bytes(), b"value");
        }
        let saved = if hints { file.save(dir.path()) } else { file.save_data(dir.path()) };
        saved.unwrap();
        let dir = PartitionDir::open(dir.path()).unwrap();
        let asked = std::cell::Cell::new(0);
        let stops = || {
            asked.set(asked.get() + 1);
            asked.get() > 100
        };
        assert!(dir.load_latest(&stops).is_none());
        assert!(asked.get() <= 104, "{} records were looked at after the stop", asked.get() - 100);
        assert_eq!(dir.load_latest(&|| false).unwrap().keys(), 1_000);
    }
}

#[test]
fn the_directory_of_a_running_node_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("bitcask.write.lock");
    fs::write(&lock, format!("{} /data/1.bitcask.data\n", std::process::id())).unwrap();
    let error = PartitionDir::open(dir.path()).unwrap_err();
    assert!(matches!(error, SourceError::InUse { pid, .. } if pid == std::process::id()));
    assert!(error.to_string().contains("stop the Riak node first"), "{error}");
    // No process has this id, so the lock was left behind.
    fs::write(&lock, "2147483646 \n").unwrap();
    assert!(PartitionDir::open(dir.path()).is_ok());
}

/// A named pipe keeps its reader waiting until somebody writes to it.
#[test]
fn what_is_no_regular_file_is_refused_and_never_read() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = |name: &str| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join(name), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    pipe("bitcask.write.lock");
    let mut file = FileWriter::new(1);
    file.put(10, A, b"v");
    let hint = file.save_data(dir.path()).unwrap().with_extension("hint");
    pipe(hint.file_name().unwrap().to_str().unwrap());
    assert_eq!(read(dir.path()).0, found(&[(A, "v")]));
    pipe("2.bitcask.data");
    let refused = PartitionDir::open(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("2.bitcask.data is not a regular file"), "{refused}");
}

#[test]
fn partition_directories_are_found_in_order() {
    let root = tempfile::tempdir().unwrap();
    let names =
        ["0", "890602560248518965780370444936484965102833893376", "22835963083295358096932575511191922182123945984"];
    for name in names.iter().chain(&["91343852333181432387730302044767688728495783936-1357908642", "not-a-partition"]) {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    let dirs = partition_dirs(root.path()).unwrap();
    let found: Vec<_> = dirs.iter().map(|d| d.file_name().unwrap().to_str().unwrap().len()).collect();
    assert_eq!(found, [1, 47, 58, 48]);
    let one = root.path().join("0");
    fs::write(one.join("1.bitcask.data"), b"").unwrap();
    assert_eq!(partition_dirs(&one).unwrap(), [one]);
}

#[test]
fn a_directory_without_partitions_is_refused_with_a_hint() {
    let root = tempfile::tempdir().unwrap();
    let error = partition_dirs(root.path()).unwrap_err().to_string();
    assert!(error.contains("/var/lib/riak/bitcask"), "{error}");
    fs::create_dir_all(root.path().join("bitcask/0")).unwrap();
    let error = partition_dirs(root.path()).unwrap_err().to_string();
    assert!(error.contains("bitcask has: name that one"), "{error}");
    assert!(matches!(partition_dirs(&root.path().join("missing")), Err(SourceError::Io { .. })));
}
