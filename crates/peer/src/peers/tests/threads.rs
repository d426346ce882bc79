//! Nodes that serve their clients on several threads.

use super::*;
use ombak_runtime::{Network, ServingThreads, number_this_thread};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

const WHERE: u16 = 4;

/// Threads with the numbers 1, 2 and so on. They end when this is dropped.
struct Threads {
    handles: Vec<Handle>,
    _stop: watch::Sender<()>,
}

impl Threads {
    fn start(count: usize) -> Self {
        let (stop, stopped) = watch::channel(());
        let thread = |number| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let (handle, mut stopped) = (runtime.handle().clone(), stopped.clone());
            std::thread::spawn(move || {
                number_this_thread(number);
                // An error means that the sender is gone.
                let _stopped = runtime.block_on(stopped.changed());
            });
            handle
        };
        Self { handles: (1..=count).map(thread).collect(), _stop: stop }
    }

    fn runtime(&self) -> Arc<ServingThreads> {
        Arc::new(ServingThreads::new(self.handles.clone()))
    }

    /// The world of a node with these threads.
    fn world(&self) -> (Arc<dyn Runtime>, Arc<dyn Network>) {
        (self.runtime(), Arc::new(TcpNetwork::default()))
    }

    /// Runs something on the thread with this number, and waits for it.
    async fn run<T: Send + 'static>(&self, number: usize, work: impl Future<Output = T> + Send + 'static) -> T {
        soon(self.handles[number - 1].spawn(work)).await.unwrap()
    }
}

#[tokio::test]
async fn each_thread_has_a_connection_which_the_peer_serves_on_one_of_its_threads() {
    let (threads, peer_threads) = (Threads::start(3), Threads::start(2));
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let (there, log) = (peer_threads.runtime(), Arc::clone(&seen));
    let services = services(|services| {
        let service = move |request: Incoming, answer: Responder| {
            log.lock().insert((request.body()[0], there.thread_number()));
            answer.answer(request.body().clone());
        };
        services.register(WHERE, "where", Arc::new(service)).unwrap();
    });
    let config = PeersConfig::default();
    let (one, _) = start_in(threads.world(), &Who::node(1), super::services(|_| {}), config.clone(), any_port());
    let (other, address) = start_in(peer_threads.world(), &Who::node(2), services, config, any_port());
    one.set_address(two(), address);
    // The thread of the test has number 0.
    for _ in 0..3 {
        assert!(soon(one.call(two(), outgoing(WHERE, vec![0]))).await.is_ok());
        for number in 1..=3 {
            let caller = one.clone();
            let answer = async move { caller.call(two(), outgoing(WHERE, vec![number as u8])).await };
            assert_eq!(threads.run(number, answer).await.unwrap(), vec![number as u8]);
        }
    }
    assert_eq!(*seen.lock(), BTreeSet::from([(0, 0), (1, 1), (2, 2), (3, 1)]));
    assert_eq!(one.counts()[&two()].connections, 4);
    assert_eq!(other.inner.accepted.lock().counts(), (0, 4), "none has replaced another");
}

#[tokio::test]
async fn threads_that_end_end_their_connections_and_calls() {
    let (threads, peer_threads) = (Threads::start(1), Threads::start(1));
    let (taken, is_taken) = sync_channel(1);
    let held = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&held);
    let services = services(|services| {
        let service = move |request: Incoming, answer: Responder| {
            keep.lock().push((request, answer));
            taken.send(()).unwrap();
        };
        services.register(WHERE, "hold", Arc::new(service)).unwrap();
    });
    let config = PeersConfig::default();
    let (one, _) = start_in(threads.world(), &Who::node(1), super::services(|_| {}), config.clone(), any_port());
    let (other, address) = start_in(peer_threads.world(), &Who::node(2), services, config, any_port());
    one.set_address(two(), address);
    let caller = one.clone();
    let call = threads.handles[0].spawn(async move { caller.call(two(), outgoing(WHERE, vec![1])).await });
    tokio::task::spawn_blocking(move || is_taken.recv_timeout(PATIENCE)).await.unwrap().unwrap();
    assert_eq!(other.serving(), 1);
    drop(peer_threads);
    assert_eq!(soon(call).await.unwrap(), Err(PeerError::Closed));
    until(|| other.serving() == 0).await;
}
