//! Power cuts, damage, and a model.

use super::error::LogError;
use super::format::SECTOR_BYTES;
use super::log_file::{LOG_FILE, LogContent};
use super::store::LogStore;
use super::vote_file::VOTE_FILE;
use bytes::Bytes;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/data";
const IDENTITY: u64 = 0xfeed;

fn new_fs(seed: u64) -> Arc<FaultyFs> {
    let fs = FaultyFs::new(seed);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

fn open(fs: &Arc<FaultyFs>) -> Result<LogStore, LogError> {
    LogStore::open(fs.clone(), Path::new(DIR), || Ok(IDENTITY))
}

fn log_path() -> std::path::PathBuf {
    Path::new(DIR).join(LOG_FILE)
}

fn log_bytes(fs: &FaultyFs) -> Vec<u8> {
    read_file(fs, &log_path(), 1 << 20).unwrap()
}

/// What a store holds, and what it should hold.
#[derive(Clone, Debug, PartialEq)]
struct Expected {
    content: LogContent,
    vote: Value,
}

impl Expected {
    fn of(store: &LogStore) -> Self {
        Self { content: store.content().clone(), vote: store.vote().clone() }
    }

    fn new() -> Self {
        Self { content: LogContent::default(), vote: Value::Null }
    }

    /// The indexes that may be removed or purged.
    fn last(&self) -> Option<u64> {
        self.content.entries.last_key_value().map(|(index, _)| *index)
    }

    fn next(&self) -> u64 {
        self.last().or(self.content.purged.as_ref().map(|(index, _)| *index)).map_or(0, |last| last + 1)
    }
}

/// A change of a store. Numbers are reduced to what the store allows.
#[derive(Clone, Debug)]
enum Change {
    Append { lengths: Vec<usize> },
    RemoveFrom { back: u64 },
    Commit { number: u8 },
    Purge { back: u64 },
    Vote { number: u8 },
}

fn entry(index: u64, length: usize) -> Bytes {
    Bytes::from((0..length).map(|i| (index as u8).wrapping_mul(31).wrapping_add(i as u8)).collect::<Vec<u8>>())
}

/// A file system with these files.
fn with_files(log: &[u8], vote: &[u8]) -> Arc<FaultyFs> {
    let fs = new_fs(99);
    replace_file(&*fs, &log_path(), log).unwrap();
    replace_file(&*fs, &Path::new(DIR).join(VOTE_FILE), vote).unwrap();
    fs
}

/// What a complete history leaves: the two files, and what they should hold.
fn written() -> (Vec<u8>, Vec<u8>, Expected) {
    let fs = new_fs(1);
    let (expected, _) = run_until_cut(&fs, &history());
    let vote = read_file(&*fs, &Path::new(DIR).join(VOTE_FILE), 1 << 20).unwrap();
    (log_bytes(&fs), vote, expected)
}

/// Applies a change to the model, and to the store if there is one.
fn apply(change: &Change, model: &mut Expected, store: Option<&mut LogStore>) -> Result<(), LogError> {
    let mut noop = |_: &mut LogStore| Ok(());
    let run: &mut dyn FnMut(&mut LogStore) -> Result<(), LogError> = &mut noop;
    let result = |run: &mut dyn FnMut(&mut LogStore) -> Result<(), LogError>| store.map_or(Ok(()), run);
    match change {
        Change::Append { lengths } => {
            let next = model.next();
            let entries: Vec<(u64, Bytes)> =
                (next..).zip(lengths).map(|(index, length)| (index, entry(index, *length))).collect();
            model.content.entries.extend(entries.clone());
            result(&mut move |store| store.append(entries.clone()))
        }
        Change::RemoveFrom { back } => {
            let Some(last) = model.last() else { return result(run) };
            let index = last.saturating_sub(*back);
            model.content.entries.retain(|known, _| *known < index);
            result(&mut move |store| store.remove_from(index))
        }
        Change::Commit { number } => {
            let which = Bytes::copy_from_slice(&[*number]);
            model.content.committed = Some(which.clone());
            result(&mut move |store| store.set_committed(which.clone()))
        }
        Change::Purge { back } => {
            let first = model.content.entries.first_key_value().map(|(index, _)| *index);
            let (Some(first), Some(last)) = (first, model.last()) else { return result(run) };
            let index = last.saturating_sub(*back).max(first);
            model.content.entries.retain(|known, _| *known > index);
            model.content.purged = Some((index, Bytes::from_static(b"which")));
            result(&mut move |store| store.purge(index, Bytes::from_static(b"which")))
        }
        Change::Vote { number } => {
            model.vote = json!({ "term": number });
            result(&mut move |store| store.save_vote(json!({ "term": number })))
        }
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => prop::collection::vec(0..1500usize, 1..4).prop_map(|lengths| Change::Append { lengths }),
        1 => (0..4u64).prop_map(|back| Change::RemoveFrom { back }),
        2 => any::<u8>().prop_map(|number| Change::Commit { number }),
        1 => (0..4u64).prop_map(|back| Change::Purge { back }),
        1 => any::<u8>().prop_map(|number| Change::Vote { number }),
    ]
}

/// A fixed history that has every kind of change more than once.
fn history() -> Vec<Change> {
    let append = |lengths: &[usize]| Change::Append { lengths: lengths.to_vec() };
    vec![
        Change::Vote { number: 1 },
        append(&[10, 700, 0]),
        Change::Commit { number: 1 },
        append(&[300]),
        Change::RemoveFrom { back: 1 },
        Change::Vote { number: 2 },
        append(&[20, 1200]),
        Change::Commit { number: 2 },
        Change::Purge { back: 1 },
        append(&[5, 5, 5]),
        Change::Purge { back: 0 },
        append(&[100]),
    ]
}

/// Checks what is found after a loss of power during `last`, which came after `before`. An append
/// of several entries may be there in part: nobody was told that it is.
fn check_after_loss(found: &Expected, before: &Expected, last: Option<&Change>, context: &str) {
    if found == before {
        return;
    }
    let Some(last) = last else { panic!("{context}: found {found:?}, not {before:?}") };
    let mut after = before.clone();
    apply(last, &mut after, None).unwrap();
    if let Change::Append { .. } = last {
        let shorter = |content: &LogContent, with: &LogContent| {
            content.purged == with.purged
                && content.committed == with.committed
                && content.entries.iter().all(|(index, entry)| with.entries.get(index) == Some(entry))
        };
        let complete = before.content.entries.keys().all(|index| found.content.entries.contains_key(index));
        assert!(complete && shorter(&found.content, &after.content), "{context}: {found:?}");
        assert_eq!(found.vote, before.vote, "{context}");
    } else {
        assert_eq!(found, &after, "{context}");
    }
}

/// Runs changes until the power is cut. Returns what was acknowledged and the change under way.
fn run_until_cut<'a>(fs: &Arc<FaultyFs>, changes: &'a [Change]) -> (Expected, Option<&'a Change>) {
    let mut model = Expected::new();
    let Ok(mut store) = open(fs) else { return (model, None) };
    for change in changes {
        let before = model.clone();
        if apply(change, &mut model, Some(&mut store)).is_err() {
            // The vote lies in another file, and the log goes on without it.
            if !matches!(change, Change::Vote { .. }) {
                let more = store.append(vec![(before.next(), Bytes::new())]);
                assert!(matches!(more, Err(LogError::Poisoned)), "nothing more is written: {more:?}");
            }
            return (before, Some(change));
        }
    }
    (model, None)
}

#[test]
fn the_power_may_go_at_every_call() {
    let changes = history();
    let mut cuts = 0;
    for call in 1.. {
        let mut was_cut = false;
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            for seed in 0..if loss == Loss::Some { 8 } else { 1 } {
                let fs = new_fs(call * 100 + seed);
                fs.cut_power_at(call);
                let (acknowledged, last) = run_until_cut(&fs, &changes);
                was_cut = fs.is_off();
                let fs = fs.restart(loss);
                let context = format!("call {call}, {loss:?}, seed {seed}");
                let mut store = open(&fs).unwrap_or_else(|e| panic!("{context}: {e}"));
                check_after_loss(&Expected::of(&store), &acknowledged, last, &context);
                // The log goes on, and what is written now survives the next loss, too.
                let mut model = Expected::of(&store);
                apply(&Change::Append { lengths: vec![40, 600] }, &mut model, Some(&mut store)).unwrap();
                let again = open(&fs.restart(Loss::Everything)).unwrap_or_else(|e| panic!("{context}: {e}"));
                assert_eq!(Expected::of(&again), model, "{context}");
            }
        }
        if !was_cut {
            break;
        }
        cuts = call;
    }
    assert!(cuts > 50, "only {cuts} calls");
}

#[test]
fn a_flipped_bit_is_an_error_and_never_a_shorter_log() {
    let (bytes, vote, expected) = written();
    let needed_bytes = bytes.len() - SECTOR_BYTES - super::format::RECORD_HEADER_BYTES;
    let mut refused = 0;
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let fs = with_files(&damaged, &vote);
        match open(&fs) {
            Err(LogError::Unusable { what, .. }) if what.starts_with("is damaged") => refused += 1,
            Err(e) => panic!("bit {bit}: {e}"),
            // The last seal and the zeros before it may be damaged: it says nothing that is needed.
            Ok(store) => {
                assert_eq!(Expected::of(&store), expected, "bit {bit}");
                assert!(bit / 8 >= needed_bytes, "bit {bit}");
            }
        }
    }
    assert!(refused >= needed_bytes * 8, "{refused} refused of {needed_bytes} bytes");
}

#[test]
fn a_lost_sector_is_an_error_and_never_a_shorter_log() {
    let (bytes, vote, expected) = written();
    for sector in 0..bytes.len().div_ceil(SECTOR_BYTES) {
        for fill in [0, 0xff] {
            let mut damaged = bytes.clone();
            let end = (sector * SECTOR_BYTES + SECTOR_BYTES).min(damaged.len());
            damaged[sector * SECTOR_BYTES..end].fill(fill);
            let fs = with_files(&damaged, &vote);
            if let Ok(store) = open(&fs) {
                assert_eq!(Expected::of(&store), expected, "sector {sector}");
            }
        }
    }
}

#[test]
fn every_shorter_file_is_an_older_log_or_an_error() {
    let (bytes, vote, _) = written();
    for length in 0..bytes.len() {
        let fs = with_files(&bytes[..length], &vote);
        match open(&fs) {
            Ok(_) => {}
            Err(LogError::Unusable { .. }) => assert!(length < 32, "{length} bytes"),
            Err(e) => panic!("{length} bytes: {e}"),
        }
    }
}

#[test]
fn a_log_without_its_own_vote_does_not_open() {
    let vote = Path::new(DIR).join(VOTE_FILE);
    let filled = |seed| {
        let fs = new_fs(seed);
        let _ = run_until_cut(&fs, &history());
        fs
    };
    let refusal = |fs: &Arc<FaultyFs>| open(fs).err().map(|e| e.to_string()).unwrap_or_default();
    let fs = filled(4);
    fs.remove_file(&vote).unwrap();
    assert!(refusal(&fs).contains("has lost its vote"), "{}", refusal(&fs));

    let fs = filled(5);
    fs.remove_file(&log_path()).unwrap();
    assert!(refusal(&fs).contains("is missing although this node has voted"));
    fs.remove_file(&vote).unwrap();
    assert_eq!(LogStore::open(fs.clone(), Path::new(DIR), || Ok::<_, LogError>(7)).unwrap().identity(), 7);

    let fs = filled(6);
    let other = new_fs(7);
    let mut store = LogStore::open(other.clone(), Path::new(DIR), || Ok::<_, LogError>(8)).unwrap();
    store.save_vote(json!({"term": 9})).unwrap();
    replace_file(&*fs, &vote, &read_file(&*other, &vote, 1 << 20).unwrap()).unwrap();
    assert!(refusal(&fs).contains("does not belong to the vote"), "{}", refusal(&fs));
}

#[test]
fn a_gap_and_a_giant_are_refused_and_leave_no_trace() {
    let fs = new_fs(8);
    let mut store = open(&fs).unwrap();
    store.append(vec![(5, entry(5, 3))]).unwrap();
    let giant = Bytes::from(vec![0; super::format::ENTRY_BYTES_MAX + 1]);
    for bad in
        [vec![(7, entry(7, 1))], vec![(6, entry(6, 1)), (8, entry(8, 1))], vec![(6, giant)], vec![(5, entry(5, 1))]]
    {
        assert!(matches!(store.append(bad), Err(LogError::Refused { .. })));
    }
    assert_eq!(store.content().entries.len(), 1);
    store.append(vec![(6, entry(6, 1))]).unwrap();
    assert_eq!(Expected::of(&open(&fs.restart(Loss::Everything)).unwrap()), Expected::of(&store));
}

#[test]
fn a_write_that_finds_no_room_leaves_no_trace() {
    let fs = new_fs(9);
    let mut store = open(&fs).unwrap();
    store.append(vec![(0, entry(0, 100))]).unwrap();
    for free_bytes in 0..600 {
        fs.set_free_bytes(Some(free_bytes));
        let next = store.content().entries.len() as u64;
        let appended = store.append(vec![(next, entry(next, 100))]);
        fs.set_free_bytes(None);
        if let Err(error) = appended {
            assert!(error.is_full_disk(), "{error}");
            assert_eq!(store.content().entries.len() as u64, next);
        }
        store.set_committed(entry(next, 8)).unwrap();
    }
    assert!(store.content().entries.len() > 1, "there was room for none");
    assert_eq!(Expected::of(&open(&fs.restart(Loss::Everything)).unwrap()), Expected::of(&store));
}

#[test]
fn a_purge_that_finds_no_room_is_tried_again_and_nothing_else_before() {
    let mut failed = 0;
    for free_bytes in (0..4000).step_by(50) {
        let fs = new_fs(9);
        let mut store = open(&fs).unwrap();
        store.append((0..20).map(|index| (index, entry(index, 100))).collect()).unwrap();
        fs.set_free_bytes(Some(free_bytes));
        let purged = store.purge(4, entry(4, 8));
        fs.set_free_bytes(None);
        if let Err(error) = purged {
            failed += 1;
            assert!(error.is_full_disk(), "{error}");
            assert!(matches!(store.set_committed(entry(19, 8)), Err(LogError::Poisoned)));
            store.purge(4, entry(4, 8)).unwrap();
        }
        store.append(vec![(20, entry(20, 100))]).unwrap();
        assert_eq!(store.content().entries.len(), 16);
        assert_eq!(Expected::of(&open(&fs.restart(Loss::Everything)).unwrap()), Expected::of(&store));
    }
    assert!(failed > 10, "there was nearly always room");
}

/// The file of format 1 that the history gives. A released version wrote such files.
#[test]
fn format_1_stays_readable() {
    let log = include_bytes!("../../tests/fixtures/format-1/metadata.log");
    let vote = include_bytes!("../../tests/fixtures/format-1/metadata-vote.json");
    let store = open(&with_files(log, vote)).unwrap();
    let mut expected = Expected::new();
    for change in history() {
        apply(&change, &mut expected, None).unwrap();
    }
    assert_eq!((Expected::of(&store), store.identity()), (expected, IDENTITY));
    let (written_log, written_vote, _) = written();
    assert!(written_log == log && written_vote == vote, "a released version cannot read what is written now");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_log_is_what_the_model_says_also_after_a_restart(changes in prop::collection::vec(any_change(), 1..40)) {
        let mut fs = new_fs(11);
        let mut store = open(&fs).unwrap();
        let mut model = Expected::new();
        for (number, change) in changes.iter().enumerate() {
            apply(change, &mut model, Some(&mut store)).unwrap();
            prop_assert_eq!(&Expected::of(&store), &model);
            if number % 7 == 0 {
                fs = fs.restart(Loss::Nothing);
                store = open(&fs).unwrap();
            }
        }
        prop_assert_eq!(Expected::of(&open(&fs.restart(Loss::Everything)).unwrap()), model);
    }

    #[test]
    fn a_random_history_survives_a_power_cut(
        changes in prop::collection::vec(any_change(), 1..25),
        call in 1..120u64,
        seed in any::<u64>(),
    ) {
        let fs = new_fs(seed);
        fs.cut_power_at(call);
        let (acknowledged, last) = run_until_cut(&fs, &changes);
        let store = open(&fs.restart(Loss::Some)).unwrap();
        check_after_loss(&Expected::of(&store), &acknowledged, last, "");
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), with_header in any::<bool>()) {
        let mut file = if with_header { super::format::header(IDENTITY).to_vec() } else { Vec::new() };
        file.extend(bytes);
        let _ = super::recovery::recover(&file);
    }
}
