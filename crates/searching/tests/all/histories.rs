//! Random histories of a node: puts, deletes, buckets that come and leave, restarts, and copies of
//! directories that are put back. Afterwards an index is a function of the store.

use crate::node::{Node, bucket};
use ombak_types::Bucket;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug)]
enum Step {
    Put {
        bucket: usize,
        key: u8,
        value: u8,
    },
    Delete {
        key: u8,
    },
    /// Sets the index of a bucket: the one that is looked at, or another.
    Associate {
        bucket: usize,
        is_in: bool,
    },
    /// Waits until the index has what was stored.
    Wait,
    Restart,
    /// Copies the directory of the indexes, to be put back later.
    CopyIndex,
    /// Stops, puts the copy back, and starts.
    PutIndexBack,
    /// Stops, removes the end of the newest data files, and starts.
    LoseTail,
    Rebuild,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..2_usize, 0..12_u8, any::<u8>()).prop_map(|(bucket, key, value)| Step::Put { bucket, key, value }),
        3 => (0..12_u8).prop_map(|key| Step::Delete { key }),
        2 => (0..2_usize, any::<bool>()).prop_map(|(bucket, is_in)| Step::Associate { bucket, is_in }),
        2 => Just(Step::Wait),
        2 => Just(Step::Restart),
        1 => Just(Step::CopyIndex),
        1 => Just(Step::PutIndexBack),
        1 => Just(Step::LoseTail),
        1 => Just(Step::Rebuild),
    ]
}

fn buckets() -> [Bucket; 2] {
    [bucket(), Bucket::untyped("second")]
}

fn copy_dir(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if entry.is_dir() { copy_dir(&entry, &to) } else { drop(fs::copy(&entry, &to).unwrap()) }
    }
}

/// Cuts some bytes off the newest data file of each store, as a loss of power would.
fn lose_tail(stores: &Path) {
    for entry in fs::read_dir(stores).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(files) = fs::read_dir(&dir) else { continue };
        let data = files.map(|file| file.unwrap().path());
        let newest = data.filter(|path| path.extension().is_some_and(|extension| extension == "data")).max();
        if let Some(path) = newest {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            let length = file.metadata().unwrap().len();
            file.set_len(length.saturating_sub(100)).unwrap();
        }
    }
}

/// What the index must have: the keys of the buckets that are in it, with their values.
fn expected(node: &Node, is_in: [bool; 2]) -> Vec<String> {
    let mut keys = Vec::new();
    for (bucket, _) in buckets().iter().zip(is_in).filter(|(_, is_in)| *is_in) {
        for key in 0..12_u8 {
            if let Some(value) = node.value_of(bucket, &format!("{key}")) {
                keys.push(format!("{}/{key}={value}", String::from_utf8_lossy(&bucket.name)));
            }
        }
    }
    keys.sort();
    keys
}

fn run(steps: Vec<Step>) {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let (search_dir, copied) = (dir.path().join("search"), copy.path().join("search"));
    let mut has_copy = false;
    let mut is_in = [true, false];
    let mut node = Node::open(dir.path());
    node.search.create_index("a", None, None).unwrap();
    node.associate(&buckets()[0], "a");
    for step in steps {
        match step {
            Step::Put { bucket, key, value } => {
                node.replace(&buckets()[bucket], &format!("{key}"), &format!(r#"{{"v_i":{value}}}"#));
            }
            Step::Delete { key } => node.delete(&format!("{key}")),
            Step::Associate { bucket, is_in: now } => {
                is_in[bucket] = now;
                node.associate(&buckets()[bucket], if now { "a" } else { "_dont_index_" });
            }
            Step::Wait => node.wait_for_all("a", &expected(&node, is_in)),
            Step::CopyIndex => {
                if search_dir.exists() {
                    // The files change meanwhile, so the copy may be of no use. That must be noticed.
                    let _ = std::panic::catch_unwind(|| copy_dir(&search_dir, &copied));
                    has_copy = true;
                }
            }
            Step::Rebuild => node.search.rebuild_index("a").unwrap(),
            Step::Restart | Step::PutIndexBack | Step::LoseTail => {
                node.close();
                match step {
                    Step::PutIndexBack if has_copy => copy_dir(&copied, &search_dir),
                    Step::LoseTail => lose_tail(&dir.path().join("bitcask")),
                    _ => {}
                }
                node = Node::open(dir.path());
            }
        }
    }
    node.wait_for_all("a", &expected(&node, is_in));
    node.wait_for_documents("a", expected(&node, is_in).len() as u64);
    node.close();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_index_is_a_function_of_the_store(steps in proptest::collection::vec(step(), 1..40)) {
        run(steps);
    }
}
