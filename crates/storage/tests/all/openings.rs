//! The history of a store: a number that it has given and lost stays lost for all later runs, and
//! none that is there counts as lost.

use crate::common::*;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory,
    MemoryFactory, MultiFactory, NoTerms, OPENINGS_MAX, Openings, Selector, StorageError, begin_restored,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const PARTITION: u32 = 5;

/// The last byte of a key selects the backend.
struct ByLastByte;

impl Selector for ByLastByte {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(usize::from(key.last().is_some_and(|byte| byte % 2 == 1)))
    }
}

fn config() -> JournalConfig {
    JournalConfig { file_bytes_max: 2000, merge: eager_merges(), opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

fn bitcask(fs: &Arc<FaultyFs>, root: &str) -> BitcaskFactory {
    BitcaskFactory::new(fs.clone(), root, config()).unwrap()
}

fn one(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    bitcask(fs, "/data").open(PARTITION).unwrap()
}

fn two(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    let backends: Vec<(String, Arc<dyn BackendFactory>)> =
        vec![("a".into(), Arc::new(bitcask(fs, "/a"))), ("b".into(), Arc::new(bitcask(fs, "/b")))];
    MultiFactory::new(backends, Arc::new(ByLastByte)).open(PARTITION).unwrap()
}

fn synced_put(store: &dyn Backend, key: &[u8]) -> u64 {
    let seq = put(store, key, b"value").unwrap().seq;
    store.sync(seq).unwrap();
    seq
}

fn file(name: &str) -> std::path::PathBuf {
    Path::new("/data").join(PARTITION.to_string()).join(name)
}

fn is_lost(openings: &Openings, seq: u64) -> bool {
    assert_eq!(openings.is_lost_for_mark(seq), openings.is_lost_for_told(seq));
    openings.is_lost_for_told(seq)
}

/// Each of the runs ends in order or with a loss. The lost number stays lost.
#[test]
fn what_was_lost_stays_lost_in_later_runs() {
    let mut fs = FaultyFs::new(1);
    let store = one(&fs);
    let kept = synced_put(&*store, b"kept");
    let image = fs.snapshot();
    let told = synced_put(&*store, b"told");
    assert_eq!(store.openings(), Openings::default());
    drop(store);
    fs = image.restart(Loss::Everything);
    let mut there = vec![kept];
    for is_closed in [true, false, true, true] {
        let store = one(&fs);
        assert!(is_lost(&store.openings(), told), "before the first append");
        there.push(synced_put(&*store, b"key"));
        assert!(is_lost(&store.openings(), told));
        assert!(there.iter().all(|seq| !is_lost(&store.openings(), *seq)));
        if is_closed {
            store.close().unwrap();
        }
        drop(store);
        fs = fs.restart(Loss::Everything);
    }
}

/// The history must be on the disk before the first append of a run.
#[test]
fn a_history_survives_the_end_of_its_first_run_wherever_the_power_goes() {
    let fs = FaultyFs::new(1);
    let store = one(&fs);
    synced_put(&*store, b"kept");
    let image = fs.snapshot();
    let told = synced_put(&*store, b"told");
    drop(store);
    for call in 1..40 {
        let fs = image.snapshot().restart(Loss::Everything);
        fs.cut_power_at(call);
        if let Ok(factory) = BitcaskFactory::new(fs.clone(), "/data", config())
            && let Ok(store) = factory.open(PARTITION)
            && let Ok(appended) = put(&*store, b"key", b"value")
        {
            let _ = store.sync(appended.seq);
        }
        let store = one(&fs.restart(Loss::Nothing));
        assert!(is_lost(&store.openings(), told), "call {call}");
    }
}

#[test]
fn orderly_ends_and_runs_without_appends_use_up_no_place() {
    let mut fs = FaultyFs::new(1);
    let store = one(&fs);
    synced_put(&*store, b"key");
    store.close().unwrap();
    drop(store);
    for _ in 0..3 {
        let store = one(&fs);
        synced_put(&*store, b"key");
        assert_eq!(store.openings(), Openings::default());
        store.close().unwrap();
    }
    synced_put(&*one(&fs), b"key");
    for _ in 0..5 {
        fs = fs.restart(Loss::Everything);
        assert_eq!(one(&fs).openings().pairs().len(), 1, "each finds the same end");
    }
}

#[test]
fn the_newest_openings_are_kept() {
    let mut fs = FaultyFs::new(1);
    let mut told = Vec::new();
    for _ in 0..OPENINGS_MAX + 6 {
        let store = one(&fs);
        synced_put(&*store, b"kept");
        let image = fs.snapshot();
        told.push(synced_put(&*store, b"told"));
        drop(store);
        fs = image.restart(Loss::Everything);
    }
    let openings = one(&fs).openings();
    assert_eq!(openings.pairs().len(), OPENINGS_MAX);
    assert!(told.iter().all(|seq| openings.is_lost_for_mark(*seq)), "what was forgotten is not trusted");
    assert!(!openings.is_lost_for_told(told[0]), "and gives no alarm");
    assert!(openings.is_lost_for_told(told[OPENINGS_MAX]));
}

/// The last append is a tombstone that a merge drops. It was told, and it is not lost.
#[test]
fn what_a_merge_leaves_out_is_not_lost() {
    let fs = FaultyFs::new(1);
    let store = one(&fs);
    for n in 0..20u8 {
        put(&*store, &[n], &[1; 200]).unwrap();
    }
    for n in 0..20u8 {
        store.delete(&[n]).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let store = one(&fs);
    let told = store.last_seq();
    while store.status().files > 0 {
        store.maintain(NOW_SECS).unwrap();
    }
    drop(store);
    let fs = fs.restart(Loss::Everything);
    let store = one(&fs);
    assert!(!is_lost(&store.openings(), told) && is_lost(&store.openings(), told + 1));
}

#[test]
fn a_missing_or_damaged_history_is_not_taken_for_an_empty_one() {
    for is_damaged in [false, true] {
        let fs = FaultyFs::new(1);
        let store = one(&fs);
        synced_put(&*store, b"kept");
        let image = fs.snapshot();
        let told = synced_put(&*store, b"told");
        drop(store);
        let fs = image.restart(Loss::Everything);
        let store = one(&fs);
        let later = synced_put(&*store, b"key");
        store.close().unwrap();
        drop(store);
        if is_damaged {
            fs.flip_bit(&file("openings"), 250).unwrap();
        } else {
            fs.remove_file(&file("openings")).unwrap();
        }
        for _ in 0..2 {
            let store = one(&fs);
            let openings = store.openings();
            assert!(openings.is_lost_for_mark(told) && openings.is_lost_for_mark(later), "marks are void");
            assert!(!openings.is_lost_for_told(later), "that would be a false alarm");
            let new = synced_put(&*store, b"key");
            assert!(!store.openings().is_lost_for_mark(new));
            drop(store);
        }
    }
}

/// A store of an earlier version of this program has an identity file and no history.
#[test]
fn a_store_from_before_begins_with_an_empty_history() {
    let fs = FaultyFs::new(1);
    let store = one(&fs);
    let seq = synced_put(&*store, b"key");
    store.close().unwrap();
    drop(store);
    assert!(!fs.list(Path::new("/data/5")).unwrap().iter().any(|name| name == "openings"));
    assert!(!is_lost(&one(&fs).openings(), seq));
}

#[test]
fn a_copy_and_a_restored_store_have_histories_of_their_own() {
    let dir = scratch_dir();
    let open = |name: &str, ledger: usize| -> Arc<dyn Backend> {
        let fs = Arc::new(ombak_storage::fs::RealFs);
        let (root, terms) = (dir.path().join(format!("{name}{ledger}")), Arc::new(NoTerms));
        match ledger {
            0 => BitcaskFactory::new(fs, root, config()).unwrap().open(PARTITION),
            1 => LeveledFactory::new(fs, root, config(), LedgerConfig::default(), terms).unwrap().open(PARTITION),
            _ => LeveldbFactory::new(fs, root, config(), LedgerConfig::default(), terms).unwrap().open(PARTITION),
        }
        .unwrap()
    };
    for ledger in 0..3 {
        // Ends without order, so there is a history.
        for _ in 0..2 {
            synced_put(&*open("original", ledger), b"key");
        }
        let (original, copy) = (dir.path().join(format!("original{ledger}")), dir.path().join(format!("copy{ledger}")));
        let before = open("original", ledger).openings();
        assert!(before.pairs().len() > 1, "{before:?}");
        copy_dir(&original, &copy);
        let store = open("copy", ledger);
        assert_eq!(store.openings().pairs().len(), 1, "only what this start leaves out");
        assert!(!is_lost(&store.openings(), store.found_seq()));
        drop(store);
        let restored = dir.path().join(format!("restored{ledger}")).join(PARTITION.to_string());
        std::fs::create_dir_all(&restored).unwrap();
        begin_restored(&ombak_storage::fs::RealFs, &restored, 40).unwrap();
        let store = open("restored", ledger);
        assert!(!is_lost(&store.openings(), 40) && is_lost(&store.openings(), 41));
    }
}

#[test]
fn the_history_of_a_memory_store_begins_anew() {
    let store = MemoryFactory::default().open(PARTITION).unwrap();
    synced_put(&*store, b"key");
    assert_eq!(store.openings(), Openings::default());
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8),
    Delete(u8),
    Sync,
    Maintain,
    Close,
    End(Loss),
    Image,
    SetBack(usize, Loss),
}

fn step() -> impl Strategy<Value = Step> {
    let loss = || prop_oneof![Just(Loss::Everything), Just(Loss::Some), Just(Loss::Nothing), Just(Loss::Remount)];
    prop_oneof![
        10 => (0..12u8).prop_map(Step::Put),
        6 => (0..12u8).prop_map(Step::Delete),
        4 => Just(Step::Sync),
        3 => Just(Step::Maintain),
        1 => Just(Step::Close),
        2 => loss().prop_map(Step::End),
        3 => Just(Step::Image),
        2 => (0..4usize, loss()).prop_map(|(which, loss)| Step::SetBack(which, loss)),
    ]
}

/// A partition on one disk, and what became of the numbers that it has given.
struct Run {
    has_two: bool,
    fs: Arc<FaultyFs>,
    store: Option<Arc<dyn Backend>>,
    /// The images of this run, with what was given and what was synced then.
    images: Vec<(Arc<FaultyFs>, BTreeSet<u64>, u64)>,
    there: BTreeSet<u64>,
    gone: BTreeSet<u64>,
}

impl Run {
    fn new(has_two: bool) -> Self {
        let (fs, images) = (FaultyFs::new(1), Vec::new());
        let mut run = Self { has_two, fs, store: None, images, there: BTreeSet::new(), gone: BTreeSet::new() };
        run.open(0);
        // The stores keep their ids from now on.
        [0, 1].into_iter().for_each(|key| run.take(&Step::Put(key)));
        run
    }

    fn store(&self) -> Arc<dyn Backend> {
        self.store.clone().expect("it is open")
    }

    /// `synced`: the numbers up to this one were synced when the run before ended.
    fn open(&mut self, synced: u64) {
        self.images.clear();
        self.store = Some(if self.has_two { two(&self.fs) } else { one(&self.fs) });
        let found = self.store().found_seq();
        assert!(found >= self.there.range(..=synced).next_back().copied().unwrap_or(0), "found {found} of {synced}");
        self.gone.extend(self.there.split_off(&(found + 1)));
    }

    fn check(&self) {
        let openings = self.store().openings();
        for seq in &self.there {
            assert!(
                !openings.is_lost_for_told(*seq) && !openings.is_lost_for_mark(*seq),
                "{seq} is there: {openings:?}"
            );
        }
        for seq in &self.gone {
            assert!(openings.is_lost_for_told(*seq) && openings.is_lost_for_mark(*seq), "{seq} is lost: {openings:?}");
        }
    }

    fn take(&mut self, step: &Step) {
        let store = self.store();
        let synced = store.synced_seq();
        match step {
            Step::Put(key) => drop(self.there.insert(put(&*store, &[*key], &[7; 150]).unwrap().seq)),
            Step::Delete(key) => self.there.extend(store.delete(&[*key]).unwrap().map(|appended| appended.seq)),
            Step::Sync => store.sync(store.last_seq()).unwrap(),
            Step::Maintain => (0..5).for_each(|_| store.maintain(NOW_SECS).unwrap()),
            Step::Image => self.images.push((self.fs.snapshot(), self.there.clone(), synced)),
            Step::Close => {
                store.close().unwrap();
                drop((store, self.store.take()));
                self.open(u64::MAX);
            }
            Step::End(loss) => {
                drop((store, self.store.take()));
                self.fs = self.fs.restart(*loss);
                self.open(synced);
            }
            Step::SetBack(which, loss) => {
                let Some((fs, there, synced)) = self.images.get(*which).cloned() else { return };
                drop((store, self.store.take()));
                self.fs = fs.restart(*loss);
                self.gone.extend(self.there.difference(&there));
                self.there = there;
                self.open(synced);
            }
        }
        self.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lost_is_what_was_given_and_is_not_there(
        has_two in any::<bool>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut run = Run::new(has_two);
        steps.iter().for_each(|step| run.take(step));
    }
}
