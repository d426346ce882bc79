//! The end of nodes while the cluster, or a part of it, takes no writes.

use super::*;
use ombak_metadata::state::Command;
use std::sync::Weak;

fn closing_max(closing_max: Duration) -> MemberTiming {
    MemberTiming { closing_max, command: Duration::from_secs(1), ..timing() }
}

/// Closes the cluster as the driver of a change does that dies then.
async fn close(node: &MemberNode) {
    let deadline = Instant::now() + PATIENCE;
    node.inner.metadata_node().propose(Command::CloseWrites, deadline).await.unwrap();
    until("the node takes no writes", || !node.kv().is_open_to_writes()).await;
}

/// Stops a node, and waits until nothing holds any part of it.
async fn end_altogether(node: MemberNode) {
    let left: Weak<_> = Arc::downgrade(&node.inner);
    tokio::time::timeout(PATIENCE, end(node)).await.expect("the stop takes too long");
    until("nothing holds the node", || left.strong_count() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_does_not_wait_for_the_end_of_a_closing() {
    let place = Place { timing: closing_max(Duration::from_secs(3600)), ..Place::durable(1) };
    let node = place.start().await;
    close(&node).await;
    end_altogether(node).await;
    // The closing is in force after the next start, too, and holds that one as little.
    let node = place.start().await;
    assert!(!node.kv().is_open_to_writes());
    end_altogether(node).await;
}

/// Without a majority the end of a closing is tried again and again. A node that stops gives up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_does_not_go_on_to_end_a_closing() {
    // Each node returns to its address, at which nobody else listens meanwhile.
    let place = |number: u8| Place {
        timing: closing_max(Duration::from_secs(3600)),
        listen: ([127, 3, 9, number], 0).into(),
        ..Place::durable(number.into())
    };
    let mut places = [place(1), place(2), place(3)];
    let mut nodes = Vec::new();
    for place in &mut places {
        nodes.push(place.start().await);
        place.listen = nodes.last().unwrap().node().listens_on();
    }
    form(&nodes).await;
    until("all vote", || nodes[0].inner.metadata_node().voters().len() == 3).await;
    close(&nodes[0]).await;
    while let Some(node) = nodes.pop() {
        end_altogether(node).await;
    }
    places[0].timing = closing_max(Duration::from_millis(1));
    let node = places[0].start().await;
    assert!(!node.kv().is_open_to_writes(), "only a majority can end the closing");
    end_altogether(node).await;
}
