//! Several indexes with the same writers.

use super::harness::{HASH, document};
use crate::{Index, IndexChange, WRITERS_BYTES_DEFAULT, WriterPool};
use ombak_search::schema::default_schema;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn indexes(count: usize, pool: &Arc<WriterPool>) -> (tempfile::TempDir, Vec<Index>) {
    let dir = tempfile::tempdir().unwrap();
    let schema = Arc::new(default_schema().unwrap());
    let open = |at: usize| Index::open(&dir.path().join(at.to_string()), schema.clone(), HASH, pool.clone()).unwrap();
    let indexes = (0..count).map(open).collect();
    (dir, indexes)
}

fn put(index: &Index, key: &str) {
    let document = document(index.schema(), 0, key, r#"{"v_s":"x"}"#);
    let put = IndexChange::Put { partition: 0, generation: 1, key: key.as_bytes().to_vec(), documents: vec![document] };
    index.write(vec![put], key).unwrap();
}

#[test]
fn memory_says_how_many_writers_there_are() {
    assert_eq!(WriterPool::new(WRITERS_BYTES_DEFAULT).writers_max(), 4);
    assert_eq!(WriterPool::new(0).writers_max(), 1);
    assert_eq!(WriterPool::new(30_000_000).writers_max(), 2);
}

#[test]
fn ten_indexes_share_four_writers() {
    let pool = WriterPool::new(WRITERS_BYTES_DEFAULT);
    let (_dir, indexes) = indexes(10, &pool);
    let most_open = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..5 {
            let (indexes, pool, most_open) = (&indexes, &pool, &most_open);
            scope.spawn(move || {
                for round in 0..2 {
                    for at in 0..indexes.len() {
                        put(&indexes[(at * 3 + thread) % indexes.len()], &format!("{thread}-{round}"));
                        most_open.fetch_max(pool.open_count(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!((1..=4).contains(&most_open.load(Ordering::Relaxed)), "{most_open:?}");
    for index in &indexes {
        assert_eq!(index.figures().documents, 10);
    }
    drop(indexes);
    assert_eq!(pool.open_count(), 0);
}

#[test]
fn an_index_that_writes_all_the_time_leaves_others_their_turn() {
    let pool = WriterPool::new(0);
    let (_dir, indexes) = indexes(2, &pool);
    let is_done = AtomicBool::new(false);
    let has_begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !is_done.load(Ordering::Relaxed) && number < 2_000 {
                put(&indexes[0], &number.to_string());
                has_begun.store(true, Ordering::Relaxed);
                number += 1;
            }
            assert!(is_done.load(Ordering::Relaxed), "the other index had no turn in 2,000");
        });
        while !has_begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        put(&indexes[1], "a");
        put(&indexes[1], "b");
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(indexes[1].figures().documents, 2);
}

#[test]
fn many_small_writes_do_not_pile_up_segments() {
    let pool = WriterPool::new(WRITERS_BYTES_DEFAULT);
    let (_dir, indexes) = indexes(1, &pool);
    let mut most = 0;
    for number in 0..100 {
        put(&indexes[0], &number.to_string());
        most = most.max(indexes[0].figures().segments);
    }
    assert!(most <= crate::merges::SEGMENTS_MAX as u64, "{most} segments");
    assert_eq!(indexes[0].figures().documents, 100);
    indexes[0].check().unwrap();
}
