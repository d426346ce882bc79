//! Backups of a node and their restores: each is complete or refused, whenever the power fails or
//! the disk is full.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../../kv/tests/all/support/mod.rs"]
mod support;

use bytes::Bytes;
use ombak_backup::{
    Backup, BackupError, BackupProgress, BackupReport, RestoreReport, RestoreTarget, TargetStore, restore, verify,
};
use ombak_kv::{DeleteMode, GetOptions, GetReply, GetRequest, Kv, KvConfig, OpenError, PutOptions, PutRequest};
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::{BitcaskFactory, JournalConfig, SyncStrategy};
use ombak_types::{Bucket, Object, Sibling, VectorClock};
use serde_json::json;
use std::cell::Cell;
use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::stores::{self, Opener, scratch_dir};
use support::{Node, bucket, map, values};

const RING_SIZE: u32 = 8;
const KEYS: u64 = 12;
/// The lock file of the data directory; the test no longer holds the lock.
const LOCK: &str = "node.lock";

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn typed() -> Bucket {
    Bucket::typed("carts", "b")
}

fn config(dir: &Path, backend: Arc<dyn ombak_storage::BackendFactory>) -> KvConfig {
    let mut config = KvConfig::new("riak@127.0.0.1", dir, backend);
    config.ring_size = RING_SIZE;
    config.io_threads = 1;
    config.delete_mode = DeleteMode::Keep;
    config.default_props = map(json!({"allow_mult": true, "dvv_enabled": true}));
    config
}

/// A node over the simulated file system. Everything is synced, and no background work changes the
/// moment of a cut.
fn open_on(fs: &Arc<FaultyFs>, dir: &str) -> Result<Kv, OpenError> {
    let journal = JournalConfig { sync: SyncStrategy::OSync, ..JournalConfig::default() };
    let stores = BitcaskFactory::new(fs.clone(), Path::new(dir).join("bitcask"), journal)
        .map_err(|source| OpenError::Store { partition: 0, source })?;
    let mut config = config(Path::new(dir), Arc::new(stores));
    config.fs = fs.clone();
    config.maintain_interval = Duration::from_secs(3600);
    Kv::open(config)
}

fn put(kv: &Kv, bucket: &Bucket, key: &str, value: &str, clock: VectorClock) -> Object {
    let object = Object { clock, siblings: vec![Sibling::new(Bytes::from(value.to_owned()))] };
    let options = PutOptions { return_body: true, ..PutOptions::default() };
    let request = PutRequest { bucket: bucket.clone(), key: Some(Bytes::from(key.to_owned())), object, options };
    block_on(kv.put(request)).unwrap().object.unwrap()
}

fn get(kv: &Kv, bucket: &Bucket, key: &str) -> Option<Object> {
    let key = Bytes::from(key.to_owned());
    match block_on(kv.get(GetRequest { bucket: bucket.clone(), key, options: GetOptions::default() })).unwrap() {
        GetReply::Found(object) => Some(object),
        GetReply::NotFound { .. } => None,
    }
}

/// Writes siblings to every key of an untyped bucket and of a typed bucket.
fn fill(kv: &Kv) {
    kv.buckets().create_type(b"carts", &map(json!({"n_val": 2}))).unwrap();
    kv.buckets().activate_type(b"carts").unwrap();
    for bucket in [bucket(), typed()] {
        for n in 0..KEYS {
            for value in ["one", "two"] {
                put(kv, &bucket, &format!("key {n}"), value, VectorClock::new());
            }
        }
    }
}

fn check_filled(kv: &Kv, when: &str) {
    for bucket in [bucket(), typed()] {
        for n in 0..KEYS {
            let found = get(kv, &bucket, &format!("key {n}")).unwrap_or_else(|| panic!("{when}: key {n} is lost"));
            assert_eq!(values(&found), ["one", "two"], "{when}");
        }
    }
    assert_eq!(kv.buckets().props(&typed()).unwrap().n_val, 2, "{when}");
}

fn back_up(kv: &Kv, dir: impl Into<PathBuf>, since: Option<&Path>) -> Result<BackupReport, BackupError> {
    Backup { dir: dir.into(), since: since.map(Path::to_owned) }.run(kv, &BackupProgress::default())
}

fn target(fs: Arc<dyn FileSystem>, dir: &Path, stores: &[(Option<&str>, &str)]) -> RestoreTarget {
    let store = |(name, kind): &(Option<&str>, &str)| TargetStore {
        name: name.map(str::to_owned),
        kind: (*kind).to_owned(),
        root: dir.join(name.unwrap_or(kind)),
    };
    RestoreTarget {
        fs,
        data_dir: dir.to_owned(),
        allowed_names: vec![LOCK.into()],
        ring_size: RING_SIZE,
        stores: stores.iter().map(store).collect(),
    }
}

fn restore_on(fs: &Arc<FaultyFs>, from: &str, dir: &str) -> Result<RestoreReport, BackupError> {
    restore(Path::new(from), &target(fs.clone(), Path::new(dir), &[(None, "bitcask")]), &|_, _| {})
}

#[test]
fn a_backup_that_the_power_interrupts_is_whole_or_refused() {
    let mut seen = (0, 0);
    for call in (1..).step_by(11) {
        let mut is_behind_the_end = true;
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            let when = format!("call {call}, {loss:?}");
            let fs = FaultyFs::new(call);
            let kv = open_on(&fs, "/live").unwrap();
            fill(&kv);
            fs.cut_power_at(call);
            let taken = back_up(&kv, "/backup/first", None).is_ok();
            is_behind_the_end &= taken;
            drop(kv);
            let fs = fs.restart(loss);
            match restore_on(&fs, "/backup/first", "/restored") {
                Ok(_) => {
                    seen.0 += 1;
                    check_filled(&open_on(&fs, "/restored").unwrap(), &when);
                }
                Err(error) => {
                    seen.1 += 1;
                    assert!(!taken, "{when}: {error}");
                    assert!(error.to_string().contains("incomplete"), "{when}: {error}");
                    assert!(fs.list(Path::new("/restored")).is_err(), "{when}: nothing was touched");
                }
            }
            check_filled(&open_on(&fs, "/live").unwrap(), &format!("{when}, the node itself"));
        }
        if is_behind_the_end {
            break;
        }
    }
    assert!(seen.0 > 2 && seen.1 > 50, "{seen:?}");
}

/// The second backup into a directory replaces the first one atomically. An interrupted second
/// backup leaves the first one complete, and the next backup removes all files that the interrupted
/// one wrote.
#[test]
fn a_second_backup_that_the_power_interrupts_leaves_the_first() {
    let (mut firsts, mut seconds) = (0, 0);
    for call in (1..).step_by(5) {
        let mut is_behind_the_end = true;
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            let when = format!("call {call}, {loss:?}");
            let fs = FaultyFs::new(call);
            let kv = open_on(&fs, "/live").unwrap();
            fill(&kv);
            back_up(&kv, "/backup", None).unwrap();
            put(&kv, &bucket(), "later", "v", VectorClock::new());
            fs.cut_power_at(call);
            let taken = back_up(&kv, "/backup", None).is_ok();
            is_behind_the_end &= taken && !fs.is_off();
            drop(kv);
            let fs = fs.restart(loss);
            restore_on(&fs, "/backup", "/restored").unwrap_or_else(|error| panic!("{when}: {error}"));
            let restored = open_on(&fs, "/restored").unwrap();
            check_filled(&restored, &when);
            let has_later = get(&restored, &bucket(), "later").is_some();
            assert!(has_later || !taken, "{when}");
            *(if has_later { &mut seconds } else { &mut firsts }) += 1;
            let kv = open_on(&fs, "/live").unwrap();
            back_up(&kv, "/backup", None).unwrap();
            assert_nothing_else_in(&fs, &when);
        }
        if is_behind_the_end {
            break;
        }
    }
    assert!(firsts > 30 && seconds > 3, "{firsts}, {seconds}");
}

/// The paths of the files under a directory.
fn files_under(fs: &FaultyFs, dir: &Path) -> Vec<PathBuf> {
    let names = fs.list(dir).unwrap().into_iter().map(|name| dir.join(name));
    names.flat_map(|path| if fs.list(&path).is_ok() { files_under(fs, &path) } else { vec![path] }).collect()
}

/// Checks that the directory has the files that its manifest lists, and no other files.
fn assert_nothing_else_in(fs: &FaultyFs, when: &str) {
    let text = ombak_storage::fs::read_file(fs, Path::new("/backup/manifest.json"), 1 << 20).unwrap();
    let manifest = serde_json::from_slice::<serde_json::Value>(&text).unwrap();
    let manifest = &manifest["manifest"];
    let files = |files: &serde_json::Value| files.as_array().unwrap().len();
    let stores = manifest["stores"].as_array().unwrap().iter().map(|store| files(&store["files"]));
    let told = stores.sum::<usize>() + files(&manifest["node"]);
    let found = files_under(fs, Path::new("/backup"));
    assert_eq!(found.len(), told + 2, "{when}: {found:?}");
}

#[test]
fn a_restore_that_the_power_interrupts_leaves_nothing_that_starts() {
    let mut seen = (0, 0, 0);
    for call in (1..).step_by(7) {
        let mut is_behind_the_end = true;
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            let when = format!("call {call}, {loss:?}");
            let fs = FaultyFs::new(call);
            let kv = open_on(&fs, "/live").unwrap();
            fill(&kv);
            back_up(&kv, "/backup", None).unwrap();
            drop(kv);
            fs.cut_power_at(call);
            let restored = restore_on(&fs, "/backup", "/restored").is_ok();
            is_behind_the_end &= restored;
            let fs = fs.restart(loss);
            match open_on(&fs, "/restored") {
                Ok(kv) if restored || kv.vnode_status().iter().any(|(_, status)| status.keys > 0) => {
                    seen.0 += 1;
                    check_filled(&kv, &when);
                }
                Ok(_) => seen.1 += 1,
                Err(error) => {
                    seen.2 += 1;
                    assert!(!restored && error.to_string().contains("has not finished"), "{when}: {error}");
                    let again = restore_on(&fs, "/backup", "/restored").unwrap_err().to_string();
                    assert!(again.contains("empty it and run this again"), "{when}: {again}");
                }
            }
        }
        if is_behind_the_end {
            break;
        }
    }
    assert!(seen.0 > 2 && seen.1 > 2 && seen.2 > 50, "{seen:?}");
}

#[test]
fn a_full_disk_ends_a_backup_and_not_the_node() {
    for free_bytes in [0, 50, 3000] {
        let fs = FaultyFs::new(1);
        let kv = open_on(&fs, "/live").unwrap();
        fill(&kv);
        fs.set_free_bytes(Some(free_bytes));
        let error = back_up(&kv, "/backup", None).unwrap_err().to_string();
        assert!(restore_on(&fs, "/backup", "/restored").is_err(), "{error}");
        fs.set_free_bytes(None);
        put(&kv, &bucket(), "later", "v", VectorClock::new());
        back_up(&kv, "/backup", None).unwrap();
        assert_nothing_else_in(&fs, &format!("{free_bytes} bytes"));
        restore_on(&fs, "/backup", "/restored").unwrap();
        let restored = open_on(&fs, "/restored").unwrap();
        check_filled(&restored, &format!("{free_bytes} bytes"));
        assert!(get(&restored, &bucket(), "later").is_some());
    }
}

/// The earlier state stays: no directory, an empty directory, or an earlier backup.
#[test]
fn a_backup_that_runs_out_of_room_removes_what_it_wrote() {
    for earlier in ["nothing", "a directory", "a backup"] {
        let mut refused = 0;
        for free_bytes in (0..).step_by(700) {
            let fs = FaultyFs::new(1);
            let kv = open_on(&fs, "/live").unwrap();
            fill(&kv);
            match earlier {
                "a directory" => fs.create_dir_all(Path::new("/disk/backup")).unwrap(),
                "a backup" => drop(back_up(&kv, "/disk/backup", None).unwrap()),
                _ => {}
            }
            put(&kv, &bucket(), "later", "v", VectorClock::new());
            let there = |path: &str| fs.list(Path::new(path)).map(|_| files_under(&fs, Path::new(path))).ok();
            let before = there("/disk/backup");
            fs.set_free_bytes(Some(free_bytes));
            let when = format!("{earlier} before, {free_bytes} bytes free");
            if back_up(&kv, "/disk/backup", None).is_ok() {
                break;
            }
            refused += 1;
            assert_eq!(there("/disk/backup"), before, "{when}");
            assert_eq!(there("/disk").is_some(), earlier != "nothing", "{when}: a directory is left");
            if earlier == "a backup" {
                restore_on(&fs, "/disk/backup", "/restored").map(drop).unwrap_or_else(|error| {
                    assert!(error.to_string().contains("space"), "{when}: {error}");
                });
            }
            fs.set_free_bytes(None);
            back_up(&kv, "/disk/backup", None).unwrap();
        }
        assert!(refused > 2, "{earlier} before: {refused} backups were refused");
    }
}

/// Runs `work` while a backup of the node is held in the middle. Returns the result of the backup.
fn amid_a_backup(fs: &Arc<FaultyFs>, kv: &Kv, work: impl FnOnce()) -> Result<BackupReport, BackupError> {
    std::thread::scope(|scope| {
        fs.hold(Call::Rename);
        let backup = scope.spawn(|| back_up(kv, "/backup", None));
        fs.wait_for_held(Call::Rename);
        work();
        fs.release(Call::Rename);
        backup.join().unwrap()
    })
}

#[test]
fn writes_go_on_during_a_backup_and_other_backups_wait_their_turn() {
    let fs = FaultyFs::new(1);
    let kv = open_on(&fs, "/live").unwrap();
    fill(&kv);
    let taken = amid_a_backup(&fs, &kv, || {
        put(&kv, &bucket(), "meanwhile", "v", VectorClock::new());
        let text = back_up(&kv, "/another", None).unwrap_err().to_string();
        assert!(text.contains("another backup is being taken"), "{text}");
    });
    assert!(taken.unwrap().linked_files > 0);
    assert!(get(&kv, &bucket(), "meanwhile").is_some());
    back_up(&kv, "/another", None).unwrap();
}

#[test]
fn a_node_that_stops_ends_its_backup() {
    let fs = FaultyFs::new(1);
    let kv = open_on(&fs, "/live").unwrap();
    fill(&kv);
    std::thread::scope(|scope| {
        let taken = amid_a_backup(&fs, &kv, || {
            scope.spawn(|| kv.close());
            let deadline = Instant::now() + Duration::from_secs(30);
            let request = || GetRequest { bucket: bucket(), key: "key 1".into(), options: GetOptions::default() };
            while block_on(kv.get(request())).is_ok() {
                assert!(Instant::now() < deadline, "the node does not close");
                std::thread::yield_now();
            }
        });
        assert!(matches!(taken, Err(BackupError::Stopping)), "{taken:?}");
    });
    drop(kv);
    assert!(restore_on(&fs, "/backup", "/restored").is_err());
    check_filled(&open_on(&fs, "/live").unwrap(), "the node itself");
}

#[test]
fn a_node_without_open_stores_takes_no_backup() {
    let fs = FaultyFs::new(1);
    let kv = open_on(&fs, "/live").unwrap();
    fill(&kv);
    kv.close();
    let taken = back_up(&kv, "/backup", None);
    assert!(matches!(taken, Err(BackupError::Stopping)), "{taken:?}");
}

#[test]
fn a_restored_node_is_the_same_one_with_stores_that_say_so() {
    let fs = FaultyFs::new(1);
    let kv = open_on(&fs, "/live").unwrap();
    fill(&kv);
    back_up(&kv, "/backup", None).unwrap();
    let actor = |object: &Object| object.clock.entries().last().unwrap().actor.as_bytes()[..8].to_vec();
    let before = actor(&put(&kv, &bucket(), "a new key", "v", VectorClock::new()));
    kv.close();
    drop(kv);
    restore_on(&fs, "/backup", "/restored").unwrap();
    let text = |dir: &str| {
        let bytes = ombak_storage::fs::read_file(&*fs, &Path::new(dir).join("node.json"), 10_000).unwrap();
        serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
    };
    assert_eq!(text("/live"), text("/restored"), "its id, its ring, its boot number");
    let kv = open_on(&fs, "/restored").unwrap();
    assert!(get(&kv, &bucket(), "a new key").is_none(), "it came after the cut");
    assert_ne!(actor(&put(&kv, &bucket(), "a new key", "v", VectorClock::new())), before, "no event id twice");
    let stores = BitcaskFactory::new(fs.clone(), "/restored/bitcask", JournalConfig::default());
    assert!(stores.is_err(), "the node has them");
}

#[test]
fn damage_to_a_backup_is_found_before_a_node_starts_on_it() {
    let fs = FaultyFs::new(1);
    let kv = open_on(&fs, "/live").unwrap();
    fill(&kv);
    back_up(&kv, "/backup", None).unwrap();
    drop(kv);
    let store = Path::new("/backup/1/stores/bitcask");
    let partition = store.join(fs.list(store).unwrap().first().unwrap());
    let names = fs.list(&partition).unwrap();
    let data = partition.join(names.iter().find(|name| name.ends_with(".data")).unwrap());
    let refusal = |dir: &str| restore_on(&fs, "/backup", dir).unwrap_err().to_string();
    let seen = Cell::new((0, 0));
    let verified = || verify(fs.clone(), Path::new("/backup"), &|done, total| seen.set((done, total)));
    let whole = verified().unwrap();
    assert_eq!((whole.bytes, whole.bytes), seen.get());
    assert_eq!(whole, restore_on(&fs, "/backup", "/zero").unwrap());
    fs.flip_bit(&data, 999).unwrap();
    assert!(verified().unwrap_err().to_string().contains("does not match its checksum"));
    let text = refusal("/one");
    assert!(text.contains("does not match its checksum"), "{text}");
    assert!(open_on(&fs, "/one").err().unwrap().to_string().contains("has not finished"));
    fs.flip_bit(&data, 999).unwrap();
    let length = fs.length(&data).unwrap();
    let file = fs.open(&data, ombak_storage::fs::OpenMode::Write).unwrap();
    file.truncate(length - 1).unwrap();
    assert!(refusal("/two").contains("the backup is damaged"));
    fs.remove_file(&data).unwrap();
    assert!(refusal("/two").contains("is missing from the backup"));
    assert!(verified().unwrap_err().to_string().contains("is missing from the backup"));
    assert!(fs.list(Path::new("/two")).is_err(), "nothing was touched");
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let fs = FaultyFs::new(1);
    let kv = open_on(&fs, "/live").unwrap();
    fill(&kv);
    for (dir, why) in [
        ("relative", "no path from the root"),
        ("/other/../live/backup", "without '..'"),
        ("/live/backup", "own data directory"),
    ] {
        let text = back_up(&kv, dir, None).unwrap_err().to_string();
        assert!(text.contains(why), "{text}");
    }
    back_up(&kv, "/backup", None).unwrap();
    let other = open_on(&fs, "/other").unwrap();
    let text = back_up(&other, "/more", Some(Path::new("/backup"))).unwrap_err().to_string();
    assert!(text.contains("backup of another node"), "{text}");
    let text = back_up(&other, "/backup", None).unwrap_err().to_string();
    assert!(text.contains("has backups of another node"), "{text}");
    let text = back_up(&kv, "/other", None).unwrap_err().to_string();
    assert!(text.contains("is not empty and has no backup"), "{text}");
    let text = back_up(&kv, "/backup", Some(Path::new("/backup"))).unwrap_err().to_string();
    assert!(text.contains("leave --since out"), "{text}");
    // A refused backup leaves nothing behind that hinders a later one.
    let text = back_up(&kv, "/more", Some(Path::new("/nowhere"))).unwrap_err().to_string();
    assert!(text.contains("no backup"), "{text}");

    let text = restore_on(&fs, "/backup", "/live").unwrap_err().to_string();
    assert!(text.contains("is not empty") && text.contains("empty directories"), "{text}");
    let refusal = |change: fn(&mut RestoreTarget)| {
        let mut target = target(fs.clone(), Path::new("/restored"), &[(None, "bitcask")]);
        change(&mut target);
        restore(Path::new("/backup"), &target, &|_, _| {}).unwrap_err().to_string()
    };
    let text = refusal(|target| target.ring_size = 64);
    assert!(text.contains("set ring_size = 8"), "{text}");
    let text = refusal(|target| target.stores[0].kind = "leveled".into());
    assert!(text.contains("of the backend bitcask") && text.contains("are: leveled"), "{text}");
    let text = refusal(|target| target.stores[0].name = Some("hot".into()));
    assert!(text.contains("hot (bitcask)"), "{text}");
    let text = refusal(|target| target.stores.clear());
    assert!(text.contains("are: none"), "{text}");

    let home = scratch_dir();
    let text = back_up(&Node::start().kv, home.path().join("backup"), None).unwrap_err().to_string();
    assert!(text.contains("memory keeps nothing"), "{text}");
    assert!(!home.path().join("backup").exists());
}

/// Every backend, on the real file system, with concurrent writers and an earlier backup.
fn restored_from_the_second_backup(opener: Opener, stores: &[(Option<&str>, &str)], elsewhere: tempfile::TempDir) {
    let home = scratch_dir();
    let live = home.path().join("live");
    let kv = Kv::open(config(&live, opener(&live))).unwrap();
    fill(&kv);
    let (first_dir, second_dir) = (elsewhere.path().join("first"), elsewhere.path().join("second"));
    let first = back_up(&kv, &first_dir, None).unwrap();
    for n in 0..50 {
        put(&kv, &bucket(), &format!("later {n}"), "v", VectorClock::new());
    }
    let second = back_up(&kv, &second_dir, Some(&first_dir)).unwrap();
    let again = back_up(&kv, &second_dir, None).unwrap();
    let device = |path: &Path| path.metadata().unwrap().dev();
    if device(home.path()) == device(elsewhere.path()) {
        assert!(first.linked_files > 0 && second.linked_files >= first.linked_files, "{first:?}, {second:?}");
        assert!(first.not_linked.is_none() && again.linked_files <= again.stores, "{first:?}, {again:?}");
    } else {
        assert!(first.copied_files == first.files && first.linked_files == 0, "{first:?}");
        assert!(first.not_linked.as_ref().is_some_and(|why| why.contains("cross-device")), "{first:?}");
        // Files in the first backup are not copied again.
        assert!(second.shared_files > 0, "{second:?}");
    }
    assert!(again.kept_files > second.files / 3, "{again:?}");
    kv.close();
    drop(kv);
    for (n, dir) in [first_dir, second_dir].iter().enumerate() {
        let restored = home.path().join(format!("restored {n}"));
        restore(dir, &target(Arc::new(RealFs), &restored, stores), &|_, _| {}).unwrap();
        let kv = Kv::open(config(&restored, opener(&restored))).unwrap();
        check_filled(&kv, &format!("backup {n}"));
        let later = (0..50).filter(|n| get(&kv, &bucket(), &format!("later {n}")).is_some()).count();
        assert_eq!(later, n * 50);
        kv.close();
    }
}

fn on_this_and_another_file_system(opener: Opener, stores: &[(Option<&str>, &str)]) {
    restored_from_the_second_backup(opener, stores, scratch_dir());
    restored_from_the_second_backup(opener, stores, tempfile::tempdir().unwrap());
}

#[test]
fn bitcask_is_backed_up_and_restored() {
    on_this_and_another_file_system(stores::bitcask, &[(None, "bitcask")]);
}

#[test]
fn leveled_is_backed_up_and_restored() {
    on_this_and_another_file_system(stores::leveled, &[(None, "leveled")]);
}

#[test]
fn leveldb_is_backed_up_and_restored() {
    on_this_and_another_file_system(stores::leveldb, &[(None, "leveldb")]);
}

#[test]
fn multi_is_backed_up_and_restored() {
    on_this_and_another_file_system(stores::multi, &[(Some("bitcask"), "bitcask"), (Some("leveled"), "leveled")]);
}
