use super::*;
use std::path::PathBuf;

fn shm() -> Option<tempfile::TempDir> {
    // A machine without a directory in memory cannot show anything here.
    tempfile::tempdir_in("/dev/shm").ok()
}

#[test]
fn a_mark_counts_what_is_not_synced() {
    let marks = AppendMarks::in_memory(8);
    let mark = marks.of_store(3).unwrap();
    assert_eq!(mark.earlier_run(), None);
    mark.begin(77, 1, 10);
    assert!(!mark.earlier_run().unwrap().has_lost(0, 10));
    (0..5).for_each(|_| mark.count_append());
    assert!(mark.earlier_run().unwrap().has_lost(4, 15), "one is missing");
    assert!(!mark.earlier_run().unwrap().has_lost(5, 15));
    mark.note_synced(13, 3);
    assert!(!mark.earlier_run().unwrap().has_lost(2, 15));
    assert!(mark.earlier_run().unwrap().has_lost(1, 15));
    assert!(mark.earlier_run().unwrap().has_lost(2, 12), "the disk is older than a sync");
    mark.note_failure();
    assert!(mark.earlier_run().unwrap().has_failed);
    assert_eq!(marks.of_store(4).unwrap().earlier_run(), None);
    mark.begin(78, 2, 15);
    let run = mark.earlier_run().unwrap();
    assert_eq!((run.store_id, run.has_failed, run.has_lost(0, 15)), (78, false, false));
    assert!(marks.of_store(8).is_none());
}

#[test]
fn marks_outlive_their_process_and_end_with_the_run_of_the_machine() {
    let Some(dir) = shm() else { return };
    let root = tempfile::tempdir().unwrap();
    let open = |boot| AppendMarks::open(dir.path(), root.path(), 1024, boot);
    let marks = open(1 << 70).unwrap();
    let mark = marks.of_store(1023).unwrap();
    mark.begin(5, 6, 7);
    mark.count_append();
    let refused = open(1 << 70).unwrap_err().to_string();
    assert!(refused.contains("another process uses it"), "{refused}");
    drop((mark, marks));
    let again = open(1 << 70).unwrap().of_store(1023).unwrap().earlier_run().unwrap();
    assert!(again.has_lost(0, 7) && !again.has_lost(1, 8) && again.store_id == 5);
    assert_eq!(open(1 << 71).unwrap().of_store(1023).unwrap().earlier_run(), None, "the machine was started again");
}

#[test]
fn a_root_keeps_its_marks_when_it_is_moved_and_a_copy_has_none() {
    let Some(dir) = shm() else { return };
    let roots = tempfile::tempdir().unwrap();
    let (first, moved) = (roots.path().join("a"), roots.path().join("b"));
    std::fs::create_dir(&first).unwrap();
    let mark = AppendMarks::open(dir.path(), &first, 64, 1).unwrap().of_store(0).unwrap();
    mark.begin(5, 6, 7);
    mark.count_append();
    drop(mark);
    std::fs::rename(&first, &moved).unwrap();
    std::fs::create_dir(&first).unwrap();
    let known = |root: &PathBuf| AppendMarks::open(dir.path(), root, 64, 1).unwrap().of_store(0).unwrap().earlier_run();
    assert!(known(&moved).is_some());
    // Where the file system records no times of creation, another directory may have the inode.
    assert_eq!(known(&first), None);
}

#[test]
fn a_place_that_is_not_in_memory_or_of_somebody_else_is_refused() {
    let Some(dir) = shm() else { return };
    let root = tempfile::tempdir().unwrap();
    let path = mapped::path_of(dir.path(), root.path()).unwrap();
    std::os::unix::fs::symlink(root.path().join("elsewhere"), &path).unwrap();
    assert!(AppendMarks::open(dir.path(), root.path(), 1024, 1).is_err(), "a link that somebody put there");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(AppendMarks::open(dir.path(), root.path(), 1024, 1).is_err());
    assert!(AppendMarks::open(&dir.path().join("gone"), root.path(), 64, 1).is_err());
    std::fs::remove_dir(&path).unwrap();
    let refused = || AppendMarks::open(dir.path(), root.path(), 64, 1).unwrap_err().to_string();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(refused().contains("not a file"), "{}", refused());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    // Only root can give a file to somebody else.
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
        assert!(refused().contains("not a file of the user"), "{}", refused());
    }
}

#[test]
fn a_directory_that_is_not_in_memory_is_refused() {
    let (root, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap());
    let kind = rustix::fs::statfs(here.path()).unwrap().f_type as u64;
    if matches!(kind, mapped::TMPFS | mapped::RAMFS) {
        // The sources lie in memory, so this shows nothing.
        return;
    }
    let error = AppendMarks::open(here.path(), root.path(), 64, 1).unwrap_err();
    assert!(error.to_string().contains("not in memory"), "{error}");
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0, "nothing is left there");
}

/// Where all is synced, the file has nothing to tell.
#[test]
fn an_orderly_end_removes_the_file_unless_it_has_something_to_tell() {
    let Some(dir) = shm() else { return };
    let root = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(dir.path()).unwrap().count();
    let open = || AppendMarks::open(dir.path(), root.path(), 64, 1).unwrap().of_store(1).unwrap();
    let mark = open();
    mark.begin(5, 6, 7);
    mark.count_append();
    mark.note_synced(8, 1);
    assert_eq!(files(), 1);
    drop(mark);
    assert_eq!(files(), 0);
    let mark = open();
    mark.begin(5, 7, 8);
    mark.note_failure();
    drop(mark);
    assert_eq!(files(), 1);
    assert!(open().earlier_run().unwrap().has_failed);
}
