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
    /// Goes on from a copy of all files that was made while the node ran: that of the stores before
    /// that of the indexes, so that these know more, or the other way round.
    PowerCut {
        stores_first: bool,
    },
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
        2 => any::<bool>().prop_map(|stores_first| Step::PowerCut { stores_first }),
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
        if entry.is_dir() { copy_dir(&entry, &to) } else { fs::copy(&entry, &to).map(drop).unwrap() }
    }
}

/// Copies files that change meanwhile. The copy may lack some, or have parts of them: an index must
/// notice that.
fn copy_while_it_changes(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    let Ok(entries) = fs::read_dir(from) else { return };
    for entry in entries.flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_while_it_changes(&entry.path(), &to);
        } else {
            let _ = fs::copy(entry.path(), &to);
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
                has_copy |= search_dir.exists();
                copy_while_it_changes(&search_dir, &copied);
            }
            Step::Rebuild => node.search.rebuild_index("a").unwrap(),
            Step::Restart => {
                node.close();
                node = Node::open(dir.path());
            }
            Step::PutIndexBack => {
                node.close();
                if has_copy {
                    copy_dir(&copied, &search_dir);
                }
                node = Node::open(dir.path());
            }
            Step::PowerCut { stores_first } => {
                let all = copy.path().join("all");
                let (stores, search) = (dir.path().join("bitcask"), all.join("search"));
                if !stores_first {
                    copy_while_it_changes(&search_dir, &search);
                }
                copy_dir(&stores, &all.join("bitcask"));
                if stores_first {
                    copy_while_it_changes(&search_dir, &search);
                }
                node.close();
                copy_dir(&all.join("bitcask"), &stores);
                copy_dir(&search, &search_dir);
                node = Node::open(dir.path());
            }
        }
    }
    node.wait_for_all("a", &expected(&node, is_in));
    node.wait_for_documents("a", expected(&node, is_in).len() as u64);
    node.close();
}

/// `OMBAK_SEARCH_CASES` sets how many histories run.
fn cases() -> u32 {
    std::env::var("OMBAK_SEARCH_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn an_index_is_a_function_of_the_store(steps in proptest::collection::vec(step(), 1..30)) {
        run(steps);
    }
}
