//! The keys of all that a query finds, page by page.

use crate::node::{Node, bucket};
use bytes::Bytes;
use ombak_searching::{FoundKeys, KeySearch, SearchError};
use ombak_types::{Bucket, VectorClock};
use std::time::{Duration, Instant};

/// More than two pages.
const COUNT: usize = 2_100;

fn search(index: &str, query: &str, filter: Option<&str>) -> KeySearch {
    let (index, query, filter) = (index.to_owned(), query.to_owned(), filter.map(str::to_owned));
    KeySearch { index, query, filter, deadline: Instant::now() + Duration::from_secs(20) }
}

/// The keys of all pages, and how many pages there were.
fn all(node: &Node, search: &KeySearch) -> (Vec<(Bucket, Bytes)>, usize) {
    let (mut keys, mut pages, mut from) = (Vec::new(), 0, None);
    loop {
        let FoundKeys { keys: some, next } = node.page(search, from.as_deref()).unwrap();
        assert!(some.len() <= 1_000, "{}", some.len());
        keys.extend(some);
        pages += 1;
        from = next;
        if from.is_none() {
            return (keys, pages);
        }
    }
}

#[test]
fn every_key_is_on_one_page() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    for n in 0..COUNT {
        node.put_in(&bucket(), &format!("k*{n:04}"), &format!(r#"{{"n_i":{n}}}"#), VectorClock::new());
    }
    node.wait_for_documents("famous", COUNT as u64);
    node.wait_for("famous", "n_i:[* TO 1]", &["k*0000", "k*0001"]);
    let key = |n: usize| (bucket(), Bytes::from(format!("k*{n:04}")));
    let expected = |range: std::ops::Range<usize>| range.map(key).collect::<Vec<_>>();
    assert_eq!(all(&node, &search("famous", "*:*", None)), (expected(0..COUNT), 3));
    assert_eq!(all(&node, &search("famous", "n_i:[* TO 20]", Some("n_i:[10 TO *]"))), (expected(10..21), 1));
    assert_eq!(all(&node, &search("famous", "n_i:[0 TO 999]", None)), (expected(0..1_000), 2));
    assert_eq!(all(&node, &search("famous", "name_s:none", None)), (Vec::new(), 1));
    node.put_in(&bucket(), "k*0007", r#"{"n_i":7}"#, VectorClock::new());
    node.wait_for("famous", "_yz_vtag:*", &["k*0007", "k*0007"]);
    assert_eq!(all(&node, &search("famous", "n_i:7", None)), (vec![key(7), key(7)], 1), "one for each sibling");
    node.close();
}

#[test]
fn a_search_that_cannot_be_carried_out_has_no_page() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::open(dir.path());
    node.search.create_index("famous", None, None).unwrap();
    node.associate(&bucket(), "famous");
    node.put("lion", r#"{"name_s":"Lion-o"}"#);
    node.wait_for("famous", "*:*", &["lion"]);
    let refused = |search: KeySearch, from: Option<&str>| node.page(&search, from).unwrap_err();
    assert!(matches!(refused(search("none", "*:*", None), None), SearchError::NoIndex(_)));
    for (query, filter) in [("name_s:(", None), ("word", None), ("*:*", Some("name_s:("))] {
        let error = refused(search("famous", query, filter), None);
        assert!(matches!(error, SearchError::BadRequest(_)), "{query}: {error:?}");
    }
    assert!(matches!(refused(search("famous", "*:*", None), Some("no place")), SearchError::BadRequest(_)));
    let late = KeySearch { deadline: Instant::now(), ..search("famous", "*:*", None) };
    let error = refused(late, None);
    assert!(matches!(error, SearchError::TimedOut), "{error:?}");
    node.close();
}
