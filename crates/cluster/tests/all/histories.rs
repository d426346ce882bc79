//! Random histories of one client that asks any node. What it reads is what it wrote, whichever
//! nodes coordinated.

use crate::support::{Cluster, put_request, soon, with_r, with_w};
use ombak_kv::{GetReply, PutOptions, PutRequest};
use ombak_types::{Object, Quorum, VectorClock};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Reads a key, and expects what the model has.
    Read { through: usize, key: u8, r: u32 },
    /// Writes a new value. `knows` says whether the client has read the key just before.
    Write { through: usize, key: u8, w: u32, knows: bool, n_val: Option<u32> },
}

fn step(nodes: usize) -> impl Strategy<Value = Step> {
    let read = (0..nodes, 0u8..3, 2u32..=3).prop_map(|(through, key, r)| Step::Read { through, key, r });
    let write = (0..nodes, 0u8..3, 2u32..=3, any::<bool>(), select(vec![None, Some(3)]))
        .prop_map(|(through, key, w, knows, n_val)| Step::Write { through, key, w, knows, n_val });
    prop_oneof![read, write]
}

/// The values and the clock that a read shows.
async fn read(cluster: &Cluster, through: usize, key: u8, r: u32) -> (BTreeSet<String>, VectorClock) {
    match soon(cluster.get(through, &format!("key {key}"), with_r(r))).await.unwrap() {
        GetReply::NotFound { .. } => (BTreeSet::new(), VectorClock::new()),
        GetReply::Found(object) => {
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
            (object.siblings.iter().map(|sibling| text(&sibling.value)).collect(), object.clock)
        }
    }
}

async fn run(nodes: usize, steps: Vec<Step>) {
    let cluster = Cluster::of(nodes);
    // The values that no later write has replaced.
    let mut model: BTreeMap<u8, BTreeSet<String>> = BTreeMap::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Read { through, key, r } => {
                let (found, _) = read(&cluster, through, key, r).await;
                assert_eq!(found, model.get(&key).cloned().unwrap_or_default(), "step {number} through {through}");
            }
            Step::Write { through, key, w, knows, n_val } => {
                let clock = if knows { read(&cluster, through, key, 2).await.1 } else { VectorClock::new() };
                let value = format!("value {number}");
                let options = PutOptions { n_val, dw: Some(Quorum::Count(w)), ..with_w(w) };
                let put = put_request(&format!("key {key}"), &value, options);
                let object = Object { clock, ..put.object.clone() };
                soon(cluster.node(through).kv().put(PutRequest { object, ..put })).await.unwrap();
                let values = model.entry(key).or_default();
                if knows {
                    values.clear();
                }
                values.insert(value);
            }
        }
    }
    cluster.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_client_reads_what_it_wrote_through_any_node(
        (nodes, steps) in select(vec![2usize, 3, 5]).prop_flat_map(|n| (Just(n), prop::collection::vec(step(n), 1..40))),
    ) {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio.block_on(run(nodes, steps));
    }
}
