//! Counts what clusters of several sizes send and store: see docs/benchmarks.md. Arguments: the
//! ring size, and the numbers of nodes.

use ombak_sim::scale::{PutCounts, count};
use std::time::Instant;

fn main() {
    let mut words = std::env::args().skip(1).filter_map(|word| word.parse::<u32>().ok());
    let ring_size = words.next().unwrap_or(1_024);
    let mut sizes: Vec<u32> = words.collect();
    if sizes.is_empty() {
        sizes = vec![3, 12, 30, 100];
    }
    println!("ring of {ring_size} partitions; counts of all nodes together");
    for nodes in sizes {
        let began = Instant::now();
        match count(nodes as usize, ring_size) {
            Ok(counts) => {
                println!("{nodes} nodes ({:.0} s of this machine)", began.elapsed().as_secs_f64());
                print_put("at a replica", Some(counts.put_at_replica));
                print_put("elsewhere", counts.put_elsewhere);
                let rest = counts.at_rest;
                println!("  a second at rest: {:.1} questions, {:.0} bytes", rest.calls, rest.bytes);
                let join = counts.join;
                println!(
                    "  a join: {} homes, {} entries, {:.1} s, {:.0} questions, {:.0} bytes",
                    join.homes,
                    join.entries,
                    join.took.as_secs_f64(),
                    join.traffic.calls,
                    join.traffic.bytes
                );
            }
            Err(why) => println!("{nodes} nodes: {why}"),
        }
    }
}

fn print_put(at: &str, counts: Option<PutCounts>) {
    let Some(PutCounts { traffic }) = counts else { return };
    println!(
        "  a put {at}: {:.3} questions, {:.0} bytes, {:.3} appends",
        traffic.questions, traffic.bytes, traffic.appends
    );
}
