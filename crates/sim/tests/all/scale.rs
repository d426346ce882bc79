//! What a put costs does not depend on the number of nodes.

use ombak_sim::scale::{Counts, count};

const RING_SIZE: u32 = 64;

fn counts(nodes: usize) -> Counts {
    count(nodes, RING_SIZE).unwrap_or_else(|why| panic!("{nodes} nodes: {why}"))
}

#[test]
fn a_put_takes_as_many_questions_and_appends_in_a_larger_cluster() {
    let (few, many) = (counts(3), counts(9));
    let (small, large) = (few.put_at_replica.traffic, many.put_at_replica.traffic);
    assert_eq!((small.questions, small.appends), (2.0, 3.0), "it goes to two other nodes, and is stored three times");
    assert_eq!((large.questions, large.appends), (2.0, 3.0));
    let times = large.bytes / small.bytes;
    assert!((0.9..=1.1).contains(&times), "{} and {} bytes for each put", small.bytes, large.bytes);
    assert_eq!(few.put_elsewhere, None, "each of three nodes keeps each key");
    let elsewhere = many.put_elsewhere.map(|put| (put.traffic.questions, put.traffic.appends));
    assert_eq!(elsewhere, Some((3.0, 3.0)), "it is forwarded once");
}
