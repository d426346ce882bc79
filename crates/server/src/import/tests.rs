//! Imports of directories that these tests write in Riak's exact format, into a real engine.

use super::checkpoint::Checkpoint;
use super::report::Report;
use super::run::{Import, Progress};
use super::types_file::create_types;
use bytes::Bytes;
use ombak_kv::{DeleteMode, GetOptions, GetReply, GetRequest, Kv, KvConfig};
use ombak_riak_files::bitcask::key::{encode_v0, encode_v1};
use ombak_riak_files::bitcask::writer::FileWriter;
use ombak_ring::{KeyHash, PartitionIndex, RingSize};
use ombak_storage::fs::RealFs;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::etf::{self, Term};
use ombak_types::object::Link;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Bucket, Dot, IndexEntry, Object, PropMap, Sibling, VectorClock, riak_object};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const T: u32 = 1_700_000_000;

/// The directory of a node, and a source beside it.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn source(&self) -> PathBuf {
        self.dir.path().join("riak")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("ombak")
    }

    /// The directory of the `replica`-th replica of a key on a Riak node with 64 partitions.
    fn partition_of(&self, bucket: &Bucket, key: &[u8], replica: u32) -> PathBuf {
        let home = RingSize::DEFAULT.home_of(&KeyHash::of_key(bucket, key));
        let index = PartitionIndex::of(RingSize::DEFAULT.after(home, replica), RingSize::DEFAULT);
        self.source().join(index.to_string())
    }

    /// Writes one replica of one object, alone in the directory of its partition.
    fn write(&self, bucket: &Bucket, key: &[u8], replica: u32, stored: &[u8]) -> PathBuf {
        let mut file = FileWriter::new(1);
        file.put(T, &encode_v1(bucket, key), stored);
        file.save(&self.partition_of(bucket, key, replica)).unwrap()
    }

    fn open(&self) -> Kv {
        fs::create_dir_all(self.data()).unwrap();
        let backend =
            BitcaskFactory::new(Arc::new(RealFs), self.data().join("bitcask"), JournalConfig::default()).unwrap();
        let config = KvConfig::new("n@h", self.data(), Arc::new(backend));
        let kv = Kv::open(KvConfig { ring_size: 8, delete_mode: DeleteMode::Keep, io_threads: 1, ..config }).unwrap();
        if kv.buckets().type_status(b"sibs").is_none() {
            kv.buckets().create_type(b"sibs", &PropMap::new()).unwrap();
            kv.buckets().activate_type(b"sibs").unwrap();
        }
        kv
    }

    fn import(&self, kv: &Kv) -> Report {
        self.import_until(kv, false, |_| false)
    }

    /// Imports until `stop` returns true. The import calls it from time to time.
    fn import_until(&self, kv: &Kv, restart: bool, mut stop: impl FnMut(&Progress) -> bool) -> Report {
        let interrupted = AtomicBool::new(false);
        let mut observe = |progress: &Progress| {
            assert!(progress.bytes_done <= progress.bytes);
            if stop(progress) {
                interrupted.store(true, Ordering::Relaxed);
            }
        };
        let data = self.data();
        let import = Import::begin(kv, &data, &self.source(), restart, &interrupted, &mut observe);
        import.unwrap().run().unwrap()
    }
}

fn get(kv: &Kv, bucket: &Bucket, key: &[u8]) -> GetReply {
    let request =
        GetRequest { bucket: bucket.clone(), key: Bytes::copy_from_slice(key), options: GetOptions::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(kv.get(request)).unwrap()
}

fn found(kv: &Kv, bucket: &Bucket, key: &[u8]) -> Object {
    match get(kv, bucket, key) {
        GetReply::Found(object) => object,
        GetReply::NotFound { .. } => panic!("{bucket:?}/{} is not there", key.escape_ascii()),
    }
}

fn values(object: &Object) -> Vec<&[u8]> {
    let mut values: Vec<&[u8]> = object.siblings.iter().map(|s| &s.value[..]).collect();
    values.sort_unstable();
    values
}

fn dot(actor: &str, counter: u64) -> Dot {
    Dot { actor: Actor::new(actor.as_bytes()), counter, stamp_secs: 63_900_000_000 }
}

/// An object with one value, which the last of the events wrote.
fn object(value: &str, events: &[(&str, u64)]) -> Object {
    let dots: Vec<Dot> = events.iter().map(|(actor, counter)| dot(actor, *counter)).collect();
    let mut sibling = Sibling::new(value.to_owned());
    sibling.meta.dot = dots.last().cloned();
    sibling.meta.vtag = Some(Bytes::from_static(b"15LOIB06GZjUysvwZmPNf0O"));
    sibling.meta.last_modified = Some(UnixMicros::from_secs(u64::from(T)));
    sibling.meta.content_type = Some(Bytes::from_static(b"text/plain"));
    Object { clock: VectorClock::from_entries(dots), siblings: vec![sibling] }
}

fn tombstone(events: &[(&str, u64)]) -> Object {
    let mut object = object("", events);
    object.siblings[0].meta.deleted = true;
    object
}

/// A stored object in Riak's version 0, whose dictionaries are empty.
fn v0(bucket: &str, key: &str, value: &str, events: &[(&str, u64)]) -> Vec<u8> {
    let nils = || Term::Tuple(vec![Term::nil(); 16]);
    let numbers = [0, 16, 16, 8, 80, 48].map(Term::Int);
    let mut dict = vec![Term::atom("dict")];
    dict.extend(numbers);
    dict.extend([nils(), Term::Tuple(vec![nils()])]);
    let content = Term::Tuple(vec![Term::atom("r_content"), Term::Tuple(dict.clone()), Term::binary(value.as_bytes())]);
    let entry = |(actor, counter): &(&str, u64)| {
        let stamp = Term::Int(63_900_000_000);
        Term::pair(Term::binary(actor.as_bytes()), Term::pair(Term::Int(*counter as i64), stamp))
    };
    etf::encode(&Term::Tuple(vec![
        Term::atom("r_object"),
        Term::binary(bucket.as_bytes()),
        Term::binary(key.as_bytes()),
        Term::List(vec![content]),
        Term::from_list(events.iter().map(entry).collect()),
        Term::Tuple(dict),
        Term::atom("undefined"),
    ]))
}

#[test]
fn replicas_that_diverged_become_one_object() {
    let (world, bucket) = (World::new(), Bucket::typed("sibs", "b"));
    for (replica, copy) in [
        object("old", &[("a", 1)]),
        object("newer", &[("a", 1), ("b", 1)]),
        object("concurrent", &[("a", 1), ("c", 1)]),
    ]
    .iter()
    .enumerate()
    {
        world.write(&bucket, b"k", replica as u32, &riak_object::encode(copy));
    }
    let kv = world.open();
    let report = world.import(&kv);
    assert!(report.complete);
    assert_eq!((report.copies, report.keys_new, report.faults, report.partitions_done), (3, 1, 0, 3));
    let object = found(&kv, &bucket, b"k");
    assert_eq!(values(&object), [&b"concurrent"[..], b"newer"]);
    for event in [dot("a", 1), dot("b", 1), dot("c", 1)] {
        assert!(object.clock.contains(&event), "{event:?}");
    }
    kv.close();
}

#[test]
fn everything_about_an_object_comes_along() {
    let (world, bucket) = (World::new(), Bucket::untyped("b"));
    let mut original = object("value", &[("a", 3)]);
    let meta = &mut original.siblings[0].meta;
    meta.charset = Some(Bytes::from_static(b"utf-8"));
    meta.links = vec![Link { bucket: "b".into(), key: "other".into(), tag: "next".into() }];
    meta.user_meta = vec![(Bytes::from_static(b"X-Riak-Meta-Who"), Bytes::from_static(b"me"))];
    meta.indexes =
        vec![IndexEntry::parse(b"age_int", b"-42").unwrap(), IndexEntry::parse(b"name_bin", b"ann").unwrap()];
    world.write(&bucket, b"k", 0, &riak_object::encode(&original));
    let kv = world.open();
    world.import(&kv);
    assert_eq!(found(&kv, &bucket, b"k"), original);
    kv.close();
}

#[test]
fn old_objects_under_old_keys_are_read() {
    let (world, bucket) = (World::new(), Bucket::untyped("b"));
    let mut file = FileWriter::new(1);
    file.put(T, &encode_v0(&bucket, b"k"), &v0("b", "k", "version 0", &[("a", 1)]));
    file.save(&world.partition_of(&bucket, b"k", 0)).unwrap();
    let newer = object("version 1", &[("a", 2)]);
    world.write(&bucket, b"k", 1, &riak_object::encode(&newer));
    let alone = Bucket::untyped("alone");
    world.write(&alone, b"k", 0, &v0("alone", "k", "only", &[("z", 1)]));
    let kv = world.open();
    assert_eq!(world.import(&kv).faults, 0);
    assert_eq!(values(&found(&kv, &bucket, b"k")), [b"version 1"]);
    let old = found(&kv, &alone, b"k");
    assert_eq!((values(&old), old.clock.contains(&dot("z", 1))), (vec![&b"only"[..]], true));
    kv.close();
}

#[test]
fn a_deleted_key_stays_deleted_whichever_replica_comes_first() {
    for tombstone_in in [0, 2] {
        let (world, bucket) = (World::new(), Bucket::untyped("b"));
        world.write(&bucket, b"k", tombstone_in, &riak_object::encode(&tombstone(&[("a", 1), ("b", 1)])));
        world.write(&bucket, b"k", 1, &riak_object::encode(&object("stale", &[("a", 1)])));
        let kv = world.open();
        assert_eq!(world.import(&kv).tombstones, 1);
        assert!(matches!(get(&kv, &bucket, b"k"), GetReply::NotFound { tombstone: Some(_) }));
        kv.close();
    }
}

#[test]
fn what_bitcask_removed_is_not_brought_back() {
    let (world, bucket) = (World::new(), Bucket::untyped("b"));
    for (version, key) in [(0, b"k0"), (1, b"k1"), (2, b"k2")] {
        let (mut one, mut two) = (FileWriter::new(1), FileWriter::new(2));
        let stored = encode_v1(&bucket, key);
        one.put(T, &stored, &riak_object::encode(&object("removed", &[("a", 1)])));
        match version {
            0 => two.tombstone_v0(T, &stored),
            _ => two.tombstone(version, T, &stored, 1),
        };
        let dir = world.partition_of(&bucket, key, 0);
        one.save(&dir).unwrap();
        two.save(&dir).unwrap();
    }
    let kv = world.open();
    let report = world.import(&kv);
    assert_eq!((report.copies, report.faults, report.complete), (0, 0, true));
    for key in [b"k0", b"k1", b"k2"] {
        assert!(matches!(get(&kv, &bucket, key), GetReply::NotFound { tombstone: None }));
    }
    kv.close();
}

#[test]
fn unknown_types_are_counted_and_can_be_brought_along() {
    let (world, bucket) = (World::new(), Bucket::typed("carts", "b"));
    for replica in 0..3 {
        world.write(&bucket, b"k", replica, &riak_object::encode(&object("v", &[("a", 1)])));
    }
    let kv = world.open();
    let report = world.import(&kv);
    assert_eq!(report.skipped_by_type.get("carts"), Some(&3));
    assert!(report.to_text().contains("3 copies of bucket type carts"), "{}", report.to_text());

    let types = world.dir.path().join("types.json");
    fs::write(&types, r#"{"carts": {"props": {"n_val": 5}}, "sibs": {}}"#).unwrap();
    create_types(&types, kv.buckets()).unwrap();
    assert_eq!(kv.buckets().props(&bucket).unwrap().n_val, 5);
    let report = world.import(&kv);
    assert_eq!((report.keys_new, report.copies_known, report.skipped_by_type.len()), (1, 2, 0));
    assert_eq!(values(&found(&kv, &bucket, b"k")), [b"v"]);

    fs::write(&types, r#"{"bad": {"props": {"n_val": 0}}}"#).unwrap();
    let error = create_types(&types, kv.buckets()).unwrap_err();
    assert!(error.ends_with("bucket type bad: n_val: not_integer"), "{error}");
    kv.close();
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_in() {
    let (world, bucket) = (World::new(), Bucket::untyped("b"));
    let stored = |key: &str| encode_v1(&bucket, key.as_bytes());
    let good = |value| riak_object::encode(&object(value, &[("a", 1)]));
    let mut file = FileWriter::new(1);
    file.put(T, &stored("first"), &good("first"));
    let rotten = file.put(T, &stored("rotten"), &good("rotten"));
    let nonsense = file.put(T, &stored("nonsense"), b"5\x01nonsense");
    let foreign = file.put(T, b"\x02no key", &good("x"));
    file.put(T, &stored("last"), &good("last"));
    let torn = file.put(T, &stored("torn"), &good("torn"));
    let path = file.save(&world.source().join("0")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[nonsense as usize - 1] ^= 1;
    bytes.truncate(bytes.len() - 3);
    fs::write(&path, bytes).unwrap();

    let kv = world.open();
    let report = world.import(&kv);
    let places: Vec<u64> = report.first_faults.iter().map(|f| f.offset).collect();
    assert_eq!(places, [rotten, nonsense, foreign, torn]);
    assert!(report.first_faults.iter().all(|f| Path::new(&f.file).ends_with("0/1.bitcask.data")));
    assert!(report.first_faults[1].reason.starts_with("default/b/nonsense: "), "{:?}", report.first_faults);
    assert_eq!((report.faults, report.keys_new, report.complete), (4, 2, true));
    for key in ["first", "last"] {
        assert_eq!(values(&found(&kv, &bucket, key.as_bytes())), [key.as_bytes()]);
    }
    kv.close();
}

#[test]
fn an_interrupted_import_goes_on_where_it_stopped() {
    let (world, bucket) = (World::new(), Bucket::untyped("b"));
    for partition in 0..3 {
        let mut file = FileWriter::new(7);
        for n in 0..600 {
            let key = format!("{partition}-{n}");
            let value = riak_object::encode(&object(&key, &[("a", 1)]));
            file.put(T, &encode_v1(&bucket, key.as_bytes()), &value);
        }
        let index = PartitionIndex::of(partition, RingSize::DEFAULT);
        file.save(&world.source().join(index.to_string())).unwrap();
    }
    let kv = world.open();
    let mut runs = Vec::new();
    loop {
        let report = world.import_until(&kv, false, |_| true);
        runs.push((report.copies, report.partitions_done));
        if report.complete {
            break;
        }
        assert!(report.to_text().ends_with("The same command continues from here."));
    }
    assert_eq!(runs, [(512, 0), (1024, 1), (1536, 2), (1800, 3)], "nothing twice, nothing left out");
    kv.close();
    drop(kv);

    let kv = world.open();
    for partition in 0..3 {
        for n in 0..600 {
            let key = format!("{partition}-{n}");
            assert_eq!(values(&found(&kv, &bucket, key.as_bytes())), [key.as_bytes()]);
        }
    }
    let again = world.import(&kv);
    assert_eq!((again.copies, again.copies_known), (1800, 1800), "a finished import leaves no checkpoint");
    kv.close();
}

#[test]
fn a_checkpoint_is_for_one_source_and_must_be_whole() {
    let (world, bucket) = (World::new(), Bucket::untyped("b"));
    world.write(&bucket, b"k", 0, &riak_object::encode(&object("v", &[("a", 1)])));
    fs::create_dir_all(world.data()).unwrap();
    let mut other = Checkpoint::new(Path::new("/elsewhere"));
    other.report.copies = 7;
    other.save(&world.data()).unwrap();
    assert_eq!(Checkpoint::load(&world.data(), Path::new("/elsewhere")).unwrap(), other);
    assert_eq!(Checkpoint::load(&world.data(), &world.source()).unwrap().report.copies, 0);

    fs::write(world.data().join("import.json"), b"{\"format\":").unwrap();
    let kv = world.open();
    let interrupted = AtomicBool::new(false);
    let error = Import::begin(&kv, &world.data(), &world.source(), false, &interrupted, &mut |_| {}).err().unwrap();
    assert!(error.to_string().contains("start from the beginning with --restart"), "{error}");
    assert!(world.import_until(&kv, true, |_| false).complete);
    kv.close();
}

#[test]
fn the_directory_of_a_running_node_is_refused() {
    let (world, bucket) = (World::new(), Bucket::untyped("b"));
    let file = world.write(&bucket, b"k", 0, &riak_object::encode(&object("v", &[("a", 1)])));
    fs::write(file.with_file_name("bitcask.write.lock"), format!("{} \n", std::process::id())).unwrap();
    let kv = world.open();
    let interrupted = AtomicBool::new(false);
    let error = Import::begin(&kv, &world.data(), &world.source(), false, &interrupted, &mut |_| {}).err().unwrap();
    assert!(error.to_string().contains("stop the Riak node first"), "{error}");
    kv.close();
}
