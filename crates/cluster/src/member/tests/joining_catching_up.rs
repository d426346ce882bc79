//! A member that has just started, and has to know what was decided without it.

use super::*;
use futures_util::future::poll_immediate;
use ombak_kv::BucketRegistry;
use ombak_kv::buckets::{FunctionsNamespace, PropsError, RecordEdit, RecordNamespace, RecordUpdate};

const NAMESPACE: &str = "security";
/// Longer than all that a member waits for in these tests.
const LONG: Duration = PATIENCE;
/// For a member that cannot catch up.
const SHORT: Duration = Duration::from_millis(500);

/// The namespace of security, which does nothing with what it is told.
#[derive(Debug)]
struct Security;

impl RecordNamespace for Security {
    fn name(&self) -> &'static str {
        NAMESPACE
    }

    fn validate(&self, _key: &[u8], _value: &str) -> Result<(), PropsError> {
        Ok(())
    }

    fn changed(&self, _update: RecordUpdate<'_>) {}
}

/// The places and the nodes of a cluster on disks whose members know security.
async fn secured(count: usize) -> (Vec<Place>, Vec<MemberNode>) {
    let namespaces = Namespaces::new(vec![Arc::<FunctionsNamespace>::default(), Arc::new(Security)]);
    let of = |number| Place { namespaces: namespaces.clone(), ..Place::durable(number) };
    let mut places: Vec<Place> = (1..=count).map(of).collect();
    let mut nodes = Vec::new();
    for place in &mut places {
        let node = place.start().await;
        place.listen = node.node().listens_on();
        nodes.push(node);
    }
    form(&nodes).await;
    for feature in [Feature::SECURITY, Feature::OPEN_RECORDS] {
        until("the members know security", || nodes.iter().all(|node| node.check_all_can(feature).is_ok())).await;
    }
    until("all vote", || nodes[0].inner.metadata_node().voters().len() == count).await;
    let index = nodes[0].inner.metadata_node().applied();
    until("all know who votes", || nodes.iter().all(|node| node.inner.metadata_node().applied() >= index)).await;
    (places, nodes)
}

/// Changes the record that says whether security is on. A leader that has just ended may take an
/// answer with it.
async fn set_status(node: &MemberNode, status: Option<&'static str>) {
    let edit = move || status.map_or(RecordEdit::Remove, |status| RecordEdit::Set(status.into()));
    let set = move |registry: &BucketRegistry| registry.change_record(NAMESPACE, b"status", |_| Ok(edit()));
    while let Err(why) = change(node, set).await {
        assert!(matches!(why, PropsError::Storage(_)), "{why}");
    }
}

async fn enable(node: &MemberNode) {
    set_status(node, Some(r#"{"version":1,"enabled":true}"#)).await;
}

fn knows(node: &MemberNode) -> bool {
    node.kv().buckets().record(NAMESPACE, b"status").is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_has_caught_up_knows_what_was_decided_while_it_did_not_run() {
    let (places, mut nodes) = secured(3).await;
    for missing in [1, 2, 0] {
        end(nodes.remove(missing)).await;
        enable(&nodes[0]).await;
        let node = places[missing].start().await;
        assert_eq!(node.catch_up(LONG).await, CaughtUp::Entirely);
        assert!(knows(&node));
        nodes.insert(missing, node);
        set_status(&nodes[missing], None).await;
    }
    stop(&nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_alone_has_nothing_to_wait_for() {
    let place = Place::durable(1);
    for _ in 0..2 {
        let node = place.start().await;
        assert_eq!(poll_immediate(node.catch_up(LONG)).await, Some(CaughtUp::Entirely));
        end(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_a_majority_goes_on_and_catches_up_later() {
    let (places, mut nodes) = secured(3).await;
    for node in nodes.drain(..) {
        end(node).await;
    }
    let first = places[0].start().await;
    assert_eq!(first.catch_up(SHORT).await, CaughtUp::NotYet { is_secured_elsewhere: false });
    let second = places[1].start().await;
    assert_eq!(second.catch_up(LONG).await, CaughtUp::Entirely);
    assert_eq!(first.catch_up(LONG).await, CaughtUp::Entirely);
    stop(&[first, second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_a_majority_hears_from_one_member_that_security_is_on() {
    let (places, mut nodes) = secured(5).await;
    for node in nodes.drain(3..) {
        end(node).await;
    }
    enable(&nodes[0]).await;
    for node in nodes.drain(1..) {
        end(node).await;
    }
    let started = places[4].start().await;
    assert_eq!(started.catch_up(SHORT).await, CaughtUp::NotYet { is_secured_elsewhere: true });
    stop(&[started, nodes.remove(0)]).await;
}
