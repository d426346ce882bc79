//! Tests of whole nodes over real sockets of the loopback interface.

mod calls;
mod flushing;
mod strangers;
mod threads;
mod tls;

use super::*;
use crate::connection::{Incoming, Responder, Services};
use crate::error::PeerError;
use crate::frame::Priority;
use crate::handshake::{LocalPeer, Secret};
use crate::identity::{Lane, NodeIdentity, RingVersion};
use crate::mux::Body;
use crate::sessions::KeepOlderSession;
use ombak_runtime::{Network, Runtime, TcpNetwork, TokioRuntime};
use ombak_types::NodeId;
use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ECHO: u16 = 1;
const PATIENCE: Duration = Duration::from_secs(30);
const SECRET: &[u8] = b"the secret of the test cluster";

/// Who a test node is.
#[derive(Clone)]
struct Who {
    node: u64,
    session: u64,
    secret: &'static [u8],
}

impl Who {
    fn node(node: u64) -> Self {
        Self { node, session: node, secret: SECRET }
    }

    fn local(&self) -> LocalPeer {
        let identity = NodeIdentity {
            cluster: 5,
            node: NodeId::new(self.node),
            boot_number: self.session,
            session: self.session,
            capabilities: BTreeSet::from(["common".to_owned(), format!("only-{}", self.node)]),
        };
        LocalPeer { identity, secret: Secret::new(self.secret).unwrap() }
    }
}

fn echo(request: Incoming, answer: Responder) {
    answer.answer(request.body().clone());
}

fn services(more: impl FnOnce(&mut Services)) -> Services {
    let mut services = Services::default();
    services.register(ECHO, "echo", Arc::new(echo)).unwrap();
    more(&mut services);
    services
}

/// A node that listens on `on`.
fn start(who: &Who, services: Services, config: PeersConfig, on: SocketAddr) -> (Peers, SocketAddr) {
    start_in((Arc::new(TokioRuntime), Arc::new(TcpNetwork::default())), who, services, config, on)
}

fn start_in(
    (runtime, network): (Arc<dyn Runtime>, Arc<dyn Network>),
    who: &Who,
    services: Services,
    config: PeersConfig,
    on: SocketAddr,
) -> (Peers, SocketAddr) {
    let parts =
        PeersParts { runtime, network, local: who.local(), services, admission: Arc::new(KeepOlderSession), config };
    let peers = Peers::new(parts).unwrap();
    let address = peers.listen(on).unwrap();
    (peers, address)
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Node 1, which knows where node 2 listens, and node 2 with some services.
fn pair(config: PeersConfig, more: impl FnOnce(&mut Services)) -> (Peers, Peers) {
    let (one, _) = start(&Who::node(1), services(|_| {}), config.clone(), any_port());
    let (two, address) = start(&Who::node(2), services(more), config, any_port());
    one.set_address(NodeId::new(2), address);
    (one, two)
}

fn two() -> NodeId {
    NodeId::new(2)
}

fn outgoing(service: u16, body: impl Into<Body>) -> Outgoing {
    Outgoing {
        lane: Lane::Requests,
        service,
        priority: Priority::Request,
        ring: RingVersion { lineage: 1, number: 9 },
        age: Duration::ZERO,
        deadline: Instant::now() + PATIENCE,
        body: body.into(),
    }
}

/// Waits until something holds.
async fn until(mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "it never came true");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Calls until the peer answers.
async fn eventually(peers: &Peers, to: NodeId) {
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        match soon(peers.call(to, outgoing(ECHO, vec![7]))).await {
            Ok(answer) => return assert_eq!(answer, vec![7]),
            Err(error) => assert!(matches!(error, PeerError::Unreachable | PeerError::Closed), "{error:?}"),
        }
        assert!(Instant::now() < give_up_at, "the peer never answers");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
