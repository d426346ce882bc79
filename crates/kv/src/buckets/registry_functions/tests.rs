use super::*;
use crate::buckets::functions::{ALL_BYTES_MAX, FUNCTION_BYTES_MAX, FUNCTION_NAME_BYTES_MAX, FUNCTIONS_MAX};
use crate::buckets::{BucketRecord, PropertyAuthority, ProposedChange, Undecided};
use ombak_storage::fs::RealFs;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::{Bucket, PropMap};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;

fn open(dir: &Path) -> BucketRegistry {
    BucketRegistry::open(Arc::new(RealFs), dir, "n@h", &PropMap::new()).unwrap()
}

fn map(value: serde_json::Value) -> PropMap {
    value.as_object().cloned().unwrap()
}

/// The change that registers a function, or deletes it.
fn function(name: &str, source: Option<&str>) -> RecordChange {
    let record = source.map(|source| OpenRecord { value: source.into(), version: 7 });
    RecordChange::Open(RecordName::new(FUNCTIONS, name.as_bytes()), record)
}

fn source_of(registry: &BucketRegistry, name: &str) -> Option<String> {
    registry.function(name).map(|record| record.source.to_string())
}

#[test]
fn functions_survive_a_restart_beside_types_and_a_replacement_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path());
    registry.create_type(b"t", &PropMap::new()).unwrap();
    registry.put_function("My.f", "one", false).unwrap();
    assert_eq!(registry.put_function("My.f", "two", false), Err(PropsError::FunctionExists));
    let before = registry.function("My.f").unwrap();
    registry.put_function("My.f", "two \u{e9}\n", true).unwrap();
    assert_ne!(registry.function("My.f").unwrap().digest, before.digest);
    registry.put_function("gone", "x", true).unwrap();
    registry.delete_function("gone", false).unwrap();
    assert_eq!(registry.delete_function("gone", true), Err(PropsError::NoFunction));
    drop(registry);
    let registry = open(dir.path());
    assert_eq!(source_of(&registry, "My.f"), Some("two \u{e9}\n".into()));
    assert_eq!((source_of(&registry, "gone"), registry.list_types().len()), (None, 2));
    // A source that returns has the digest that it had.
    registry.put_function("My.f", "one", true).unwrap();
    assert_eq!(registry.function("My.f"), Some(before));
}

#[test]
fn names_are_those_that_jobs_can_have_and_built_in_ones_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path());
    let longest = "a".repeat(FUNCTION_NAME_BYTES_MAX);
    for name in ["f", "_$9", "My.own.f", "RiakX.f", "riak.f", "x.Riak", &longest] {
        assert_eq!(registry.put_function(name, "s", false), Ok(()), "{name}");
    }
    let too_long = "a".repeat(FUNCTION_NAME_BYTES_MAX + 1);
    for name in ["", ".", "a.", ".a", "a..b", "a b", "a-b", "\u{e9}", "a/b", "a'", "Riak", "Riak.mapValues", &too_long]
    {
        assert!(matches!(registry.put_function(name, "s", true), Err(PropsError::BadName(_))), "{name}");
    }
}

#[test]
fn sources_are_bounded_each_and_together() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path());
    let refused = |name: &str, source: &str| {
        let put = registry.put_function(name, source, true);
        assert!(matches!(put, Err(PropsError::BadFunction(_))), "{name}: {put:?}");
    };
    let longest = " ".repeat(FUNCTION_BYTES_MAX);
    refused("f", &format!("{longest} "));
    refused("f", "a\u{0}b");
    refused("f", "a\u{7f}b");
    registry.put_function("f", "a\tb\r\n", false).unwrap();
    let fitting = ALL_BYTES_MAX / FUNCTION_BYTES_MAX;
    let many = (0..fitting).map(|number| function(&format!("f{number}"), Some(&longest)));
    registry.adopt(many.collect());
    refused("more", "x");
    registry.delete_function("f", false).unwrap();
    refused("more", "x");
    // What is replaced makes room.
    registry.put_function("f0", "x", true).unwrap();
    registry.put_function("more", &longest[..longest.len() - 1], false).unwrap();
    refused("yet.more", "x");
}

#[test]
fn the_number_of_functions_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path());
    let many = (0..FUNCTIONS_MAX).map(|number| function(&format!("f{number}"), Some("s")));
    registry.adopt(many.collect());
    assert_eq!(registry.put_function("one", "s", false), Err(PropsError::TooMany(FUNCTIONS_MAX)));
    registry.put_function("f7", "other", true).unwrap();
    registry.delete_function("f7", false).unwrap();
    registry.put_function("one", "s", false).unwrap();
}

#[test]
fn what_a_hook_names_is_deleted_by_force_only() {
    let dir = tempfile::tempdir().unwrap();
    let defaults = map(json!({"postcommit": [{"name": "ofDefaults"}]}));
    let registry = BucketRegistry::open(Arc::new(RealFs), dir.path(), "n@h", &defaults).unwrap();
    for name in ["f", "g", "ofDefaults", "free"] {
        registry.put_function(name, "s", false).unwrap();
    }
    let hooks = map(json!({"precommit": [{"name": "f"}, {"name": "f"}], "postcommit": [{"name": "g"}]}));
    registry.create_type(b"t", &hooks).unwrap();
    registry.activate_type(b"t").unwrap();
    // A bucket that has the hooks of its type is not named beside it.
    registry.set_bucket(&Bucket::typed("t", "inherits"), &map(json!({"r": 1}))).unwrap();
    registry.set_bucket(&Bucket::untyped("own"), &map(json!({"precommit": [{"name": "f"}]}))).unwrap();
    let used = |name: &str| match registry.delete_function(name, false) {
        Err(PropsError::FunctionUsed(users)) => users,
        other => panic!("{other:?}"),
    };
    let of_type = || HookUser::Type("t".into());
    assert_eq!(used("f"), [of_type(), HookUser::Bucket(Bucket::untyped("own"))]);
    assert_eq!(used("g"), [of_type()]);
    assert!(used("ofDefaults").contains(&HookUser::Type(DEFAULT_TYPE.into())));
    registry.delete_function("free", false).unwrap();
    registry.delete_function("f", true).unwrap();
    assert_eq!(registry.function("f"), None);
    assert!(registry.list_functions().1.contains_key("f"), "the hooks still name it");
}

/// A cluster in which another node is faster: what it has changed is found with the next look.
#[derive(Debug)]
struct Overtaken {
    registry: Arc<BucketRegistry>,
    first: Mutex<Vec<RecordChange>>,
    proposed: Mutex<Vec<ProposedChange>>,
}

impl PropertyAuthority for Overtaken {
    fn decide(&self, change: ProposedChange) -> Result<(), Undecided> {
        self.proposed.lock().push(change);
        if self.first.lock().is_empty() { Ok(()) } else { Err(Undecided::Overtaken) }
    }

    fn catch_up(&self) {
        self.registry.adopt(std::mem::take(&mut self.first.lock()));
    }
}

fn hook_of(name: &str) -> PropMap {
    map(json!({ "precommit": [{ "name": name }] }))
}

/// A registry with the function `f`, in a cluster in which `first` is decided before the next
/// change.
fn overtaken(dir: &Path, first: RecordChange) -> Arc<Overtaken> {
    let registry = Arc::new(open(dir));
    let authority =
        Overtaken { registry: registry.clone(), first: Mutex::new(vec![first]), proposed: Mutex::default() };
    let authority = Arc::new(authority);
    registry.follow(authority.clone(), vec![function("f", Some("s"))]);
    authority
}

#[test]
fn a_deletion_that_a_hook_overtakes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = Bucket::untyped("b");
    let record = BucketRecord { overrides: Arc::new(hook_of("f")), version: 8 };
    let cluster = overtaken(dir.path(), RecordChange::Bucket(bucket.clone(), Some(record)));
    let refused = cluster.registry.delete_function("f", false);
    assert_eq!(refused, Err(PropsError::FunctionUsed(vec![HookUser::Bucket(bucket)])));
    cluster.registry.delete_function("f", true).unwrap();
    let asked: Vec<bool> = cluster.proposed.lock().iter().map(|change| change.unless_named).collect();
    assert_eq!(asked, [true, false]);
}

#[test]
fn a_hook_that_the_deletion_of_its_function_overtakes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = overtaken(dir.path(), function("f", None));
    let (registry, bucket) = (&cluster.registry, Bucket::untyped("b"));
    assert_eq!(registry.set_bucket(&bucket, &hook_of("f")), Err(PropsError::FunctionGone("f".into())));
    // Who sets it now knows that it is not registered. It may be in a file.
    assert_eq!(registry.set_bucket(&bucket, &hook_of("f")), Ok(()));
    let depends_on: Vec<usize> = cluster.proposed.lock().iter().map(|change| change.functions.len()).collect();
    assert_eq!(depends_on, [1, 0]);
}

#[test]
fn only_hooks_that_are_new_depend_on_their_functions() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = overtaken(dir.path(), function("other", None));
    cluster.catch_up();
    let (registry, bucket) = (&cluster.registry, Bucket::untyped("b"));
    let record = BucketRecord { overrides: Arc::new(hook_of("f")), version: 8 };
    registry.adopt(vec![RecordChange::Bucket(bucket.clone(), Some(record))]);
    registry.set_bucket(&bucket, &map(json!({"r": 1}))).unwrap();
    registry.create_type(b"t", &hook_of("f")).unwrap();
    let depends_on: Vec<_> = cluster.proposed.lock().iter().map(|change| change.functions.clone()).collect();
    assert_eq!(depends_on, [vec![], vec![Arc::from("f")]]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The registry and its file equal a map.
    #[test]
    fn a_registry_of_functions_is_a_map(
        changes in prop::collection::vec((0..4u8, prop::option::of("[a-c\"\\\\\n]{0,5}"), any::<bool>()), 1..20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(dir.path());
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        for (number, source, flag) in changes {
            let name = format!("f{number}");
            match source {
                Some(source) => {
                    let is_refused = model.contains_key(&name) && !flag;
                    prop_assert_eq!(registry.put_function(&name, &source, flag).is_err(), is_refused);
                    if !is_refused {
                        model.insert(name, source);
                    }
                }
                None => prop_assert_eq!(registry.delete_function(&name, flag).is_ok(), model.remove(&name).is_some()),
            }
        }
        let of = |registry: &BucketRegistry| -> BTreeMap<String, String> {
            let (functions, _) = registry.list_functions();
            functions.iter().map(|(name, record)| (name.to_string(), record.source.to_string())).collect()
        };
        prop_assert_eq!(of(&registry), model.clone());
        drop(registry);
        prop_assert_eq!(of(&open(dir.path())), model);
    }
}
