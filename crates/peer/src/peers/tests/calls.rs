//! Requests and their ends.

use super::*;
use crate::connection::StreamPart;
use crate::error::RefusalCode;
use bytes::Bytes;
use futures_util::FutureExt;
use ombak_runtime::{BoxFuture, JobQueue, NoRandomBytes, Periodic, Runtime};
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

const HOLD: u16 = 2;
const LIST: u16 = 3;

/// Keeps what it is asked, unanswered.
type Held = Arc<Mutex<Vec<(Incoming, Responder)>>>;

fn hold(held: &Held) -> impl FnOnce(&mut Services) {
    let held = Arc::clone(held);
    move |services| {
        let service = move |request: Incoming, answer: Responder| held.lock().push((request, answer));
        services.register(HOLD, "hold", Arc::new(service)).unwrap();
    }
}

#[tokio::test]
async fn requests_of_all_sizes_are_answered() {
    let (one, _two) = pair(PeersConfig::default(), |_| {});
    for bytes in [0, 1, 65_000, 65_536, 5_000_000] {
        let body = Bytes::from(vec![3; bytes]);
        assert_eq!(soon(one.call(two(), outgoing(ECHO, body.clone()))).await, Ok(body));
    }
    let counts = one.counts()[&two()];
    assert_eq!((counts.connections, counts.calls, counts.unreachable), (1, 5, 0));
    assert!(counts.bytes_sent > 5_000_000 && counts.bytes_received > 5_000_000);
    // Five small frames would not hold five million bytes.
    assert!(counts.frames_sent > 80 && counts.frames_received > 80, "{counts:?}");
}

#[tokio::test]
async fn many_requests_share_one_connection() {
    let (one, two_) = pair(PeersConfig::default(), |_| {});
    let calls = (0..500u32).map(|number| {
        let one = one.clone();
        async move {
            let body = Bytes::copy_from_slice(&number.to_le_bytes());
            assert_eq!(one.call(two(), outgoing(ECHO, body.clone())).await, Ok(body));
        }
    });
    soon(futures_util::future::join_all(calls)).await;
    assert_eq!((one.counts()[&two()].connections, one.counts()[&two()].calls), (1, 500));
    let other_side = two_.counts()[&NodeId::new(1)];
    assert_eq!((other_side.connections, other_side.served), (1, 500));
    // The other lane has a connection of its own.
    let bulk = Outgoing { lane: Lane::Bulk, ..outgoing(ECHO, vec![1]) };
    assert!(soon(one.call(two(), bulk)).await.is_ok());
    assert_eq!(one.counts()[&two()].connections, 2);
    assert_eq!(two_.inner.accepted.lock().counts(), (0, 2));
}

#[tokio::test]
async fn a_heartbeat_overtakes_a_large_body() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    let (one, _two) = pair(PeersConfig::default(), move |services| {
        let service = move |request: Incoming, answer: Responder| {
            log.lock().push(request.body().len());
            answer.answer(Bytes::new());
        };
        services.register(HOLD, "log", Arc::new(service)).unwrap();
    });
    eventually(&one, two()).await;
    let (large, sent_before) = (vec![1; 50 << 20], one.counts()[&two()].bytes_sent);
    let sender = one.clone();
    let large = tokio::spawn(async move { sender.call(two(), outgoing(HOLD, large)).await });
    // A timer could fire too late, so the test looks after every turn of the connections.
    while one.counts()[&two()].bytes_sent <= sent_before + 100_000 {
        tokio::task::yield_now().await;
    }
    let heartbeat = Outgoing { priority: Priority::Control, ..outgoing(HOLD, vec![1; 10]) };
    soon(one.call(two(), heartbeat)).await.unwrap();
    soon(large).await.unwrap().unwrap();
    assert_eq!(*order.lock(), [10, 50 << 20]);
}

#[tokio::test]
async fn a_service_may_answer_later_and_sees_the_age() {
    let held = Held::default();
    let (one, _two) = pair(PeersConfig::default(), hold(&held));
    let forwarded = Outgoing { age: Duration::from_secs(2), ..outgoing(HOLD, vec![1]) };
    let caller = one.clone();
    let call = tokio::spawn(async move { caller.call(two(), forwarded).await });
    until(|| !held.lock().is_empty()).await;
    let (request, answer) = held.lock().pop().unwrap();
    assert!(request.age() >= Duration::from_secs(2), "{:?}", request.age());
    assert!(request.age() < Duration::from_secs(2) + PATIENCE);
    assert_eq!((request.ring().number, request.peer().identity.node), (9, NodeId::new(1)));
    assert!(!request.has_expired() && request.deadline() <= Instant::now() + PATIENCE);
    answer.refuse(RefusalCode(300), vec![4]);
    let refused = PeerError::Refused { code: RefusalCode(300), detail: Bytes::from(vec![4]) };
    assert_eq!(soon(call).await.unwrap(), Err(refused));
}

#[tokio::test]
async fn a_request_that_is_too_old_is_not_executed() {
    let held = Held::default();
    let (one, _two) = pair(PeersConfig::default(), hold(&held));
    let old = Outgoing { age: Duration::from_secs(31), ..outgoing(HOLD, vec![1]) };
    assert_eq!(soon(one.call(two(), old)).await, Err(PeerError::Unreachable));
    assert!(held.lock().is_empty());
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_the_peer() {
    let held = Held::default();
    let (one, two_) = pair(PeersConfig::default(), hold(&held));
    let caller = one.clone();
    let call = tokio::spawn(async move { caller.call(two(), outgoing(HOLD, vec![1])).await });
    until(|| !held.lock().is_empty()).await;
    assert!(!held.lock()[0].1.is_cancelled());
    assert_eq!(two_.serving(), 1);
    call.abort();
    until(|| held.lock()[0].1.is_cancelled()).await;
    held.lock().clear();
    until(|| two_.serving() == 0).await;
    eventually(&one, two()).await;
}

#[tokio::test]
async fn a_call_that_has_begun_is_on_its_way_before_anybody_waits_for_it() {
    let held = Held::default();
    let (one, _two) = pair(PeersConfig::default(), hold(&held));
    eventually(&one, two()).await;
    let begin = |service| {
        let (outgoing, now) = (outgoing(service, vec![1]), Instant::now());
        let deadline = outgoing.deadline;
        one.begin_call(two(), outgoing, deadline, now)
    };
    let (dropped, answered) = (begin(HOLD), begin(ECHO));
    until(|| !held.lock().is_empty()).await;
    drop(dropped);
    until(|| held.lock()[0].1.is_cancelled()).await;
    assert_eq!(soon(answered).await.unwrap(), vec![1]);
    let calls = one.counts()[&two()].calls;
    // Without a connection it begins when somebody waits for it.
    let nobody = NodeId::new(9);
    let unknown = one.begin_call(nobody, outgoing(ECHO, vec![1]), Instant::now(), Instant::now());
    assert_eq!(soon(unknown).await, Err(PeerError::Unreachable));
    assert_eq!(one.counts()[&nobody].unreachable, 1);
    assert_eq!(one.counts()[&two()].calls, calls);
}

#[tokio::test]
async fn capabilities_are_known_while_a_peer_is_connected() {
    let (one, _two) = pair(PeersConfig::default(), |_| {});
    assert!(!one.shares(two(), "common"), "nothing is known yet");
    eventually(&one, two()).await;
    assert!(one.shares(two(), "common") && !one.shares(two(), "only-2"));
}

#[tokio::test]
async fn a_lost_answer_and_a_missing_service_have_kinds_of_their_own() {
    let (one, _two) = pair(PeersConfig::default(), |services| {
        services.register(HOLD, "drop", Arc::new(|_: Incoming, _: Responder| ())).unwrap();
    });
    assert_eq!(soon(one.call(two(), outgoing(HOLD, vec![1]))).await, Err(PeerError::AnswerLost));
    let missing = PeerError::Refused { code: RefusalCode::UNKNOWN_SERVICE, detail: Bytes::new() };
    assert_eq!(soon(one.call(two(), outgoing(99, vec![1]))).await, Err(missing));
}

#[tokio::test]
async fn a_call_ends_with_its_deadline() {
    let held = Held::default();
    let (one, _two) = pair(PeersConfig::default(), hold(&held));
    eventually(&one, two()).await;
    let brief = Outgoing { deadline: Instant::now() + Duration::from_millis(50), ..outgoing(HOLD, vec![1]) };
    let response = soon(one.call(two(), brief)).await;
    // On a slow machine the request may come too late to be sent, or to be executed.
    let executed = !held.lock().is_empty();
    match response {
        Err(PeerError::Timeout) => {}
        Err(error) => assert!(error.was_not_executed() && !executed, "{error:?}"),
        Ok(_) => panic!("nobody answers"),
    }
}

#[tokio::test]
async fn a_full_peer_answers_overload_at_once() {
    let held = Held::default();
    let mut config = PeersConfig::default();
    config.mux.served_max = [1, 2, 1];
    let (one, _two) = pair(config, hold(&held));
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let caller = one.clone();
            tokio::spawn(async move { caller.call(two(), outgoing(HOLD, vec![1])).await })
        })
        .collect();
    until(|| held.lock().len() == 2).await;
    assert_eq!(soon(one.call(two(), outgoing(ECHO, vec![1]))).await, Err(PeerError::Overload));
    let urgent = Outgoing { priority: Priority::Control, ..outgoing(ECHO, vec![1]) };
    assert!(soon(one.call(two(), urgent)).await.is_ok(), "heartbeats have their own places");
    held.lock().drain(..).for_each(|(_, answer)| answer.answer(Bytes::new()));
    for call in calls {
        assert!(soon(call).await.unwrap().is_ok());
    }
    eventually(&one, two()).await;
    assert_eq!(one.counts()[&two()].overload, 1);
}

#[tokio::test]
async fn a_listing_streams_with_back_pressure() {
    const ITEMS: usize = 300;
    let produced = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&produced);
    let (one, _two) = pair(PeersConfig::default(), move |services| {
        let service = move |_: Incoming, mut answer: Responder| {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                for number in 0..ITEMS {
                    if answer.send_item(vec![number as u8; 1000]).await.is_err() {
                        return;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
                answer.answer(vec![9]);
            });
        };
        services.register(LIST, "list", Arc::new(service)).unwrap();
    });
    let window_bytes = 16 << 10;
    let mut items = soon(one.call_streamed(two(), outgoing(LIST, vec![1]), window_bytes)).await.unwrap();
    assert_eq!(soon(items.next()).await, Ok(StreamPart::Item(Bytes::from(vec![0; 1000]))));
    // Other requests go on while nobody consumes, and the producer waits.
    for _ in 0..20 {
        eventually(&one, two()).await;
    }
    let ahead = produced.load(Ordering::Relaxed);
    assert!(ahead <= 2 * window_bytes / 1000 + 2, "{ahead} items were produced ahead");
    for number in 1..ITEMS {
        assert_eq!(soon(items.next()).await, Ok(StreamPart::Item(Bytes::from(vec![number as u8; 1000]))));
    }
    assert_eq!(soon(items.next()).await, Ok(StreamPart::End(Bytes::from(vec![9]))));
    assert_eq!(soon(items.next()).await, Ok(StreamPart::End(Bytes::from(vec![9]))), "the end stays");
}

#[tokio::test]
async fn a_producer_learns_that_nobody_listens() {
    let ended = Arc::new(AtomicUsize::new(0));
    let end = Arc::clone(&ended);
    let (one, _two) = pair(PeersConfig::default(), move |services| {
        let service = move |_: Incoming, mut answer: Responder| {
            let end = Arc::clone(&end);
            tokio::spawn(async move {
                while answer.send_item(vec![1; 1000]).await.is_ok() {}
                end.fetch_add(1, Ordering::Relaxed);
            });
        };
        services.register(LIST, "list", Arc::new(service)).unwrap();
    });
    let mut items = soon(one.call_streamed(two(), outgoing(LIST, vec![1]), 8192)).await.unwrap();
    soon(items.next()).await.unwrap();
    drop(items);
    until(|| ended.load(Ordering::Relaxed) == 1).await;
    // The end of a connection ends the producer, too.
    let mut items = soon(one.call_streamed(two(), outgoing(LIST, vec![1]), 8192)).await.unwrap();
    soon(items.next()).await.unwrap();
    one.stop();
    until(|| ended.load(Ordering::Relaxed) == 2).await;
}

#[tokio::test]
async fn a_peer_that_restarts_is_found_again() {
    let held = Held::default();
    let (one, first) = pair(PeersConfig::default(), hold(&held));
    let caller = one.clone();
    let call = tokio::spawn(async move { caller.call(two(), outgoing(HOLD, vec![1])).await });
    until(|| !held.lock().is_empty()).await;
    let (address, _) = (first.listen(any_port()).unwrap(), first.stop());
    // The request had left: whether it was executed is unknown.
    assert_eq!(soon(call).await.unwrap(), Err(PeerError::Closed));
    let again = Who { session: 77, ..Who::node(2) };
    let (_second, address_) = start(&again, services(|_| {}), PeersConfig::default(), any_port());
    assert_ne!(address, address_);
    one.set_address(two(), address_);
    eventually(&one, two()).await;
    assert_eq!(one.live_session(two()).unwrap().session, 77);
}

#[tokio::test]
async fn no_request_meets_the_connection_to_an_old_address() {
    let (one, other) = pair(PeersConfig::default(), |_| {});
    eventually(&one, two()).await;
    let (right, wrong) = (other.listen(any_port()).unwrap(), std::net::TcpListener::bind(any_port()).unwrap());
    // The driver of the connection to the old address has no turn before the next request.
    one.set_address(two(), wrong.local_addr().unwrap());
    one.set_address(two(), right);
    assert_eq!(soon(one.call(two(), outgoing(ECHO, vec![1]))).await, Ok(Bytes::from(vec![1])));
    until(|| other.inner.accepted.lock().counts().1 == 1).await;
    assert_eq!(soon(one.call(two(), outgoing(ECHO, vec![2]))).await, Ok(Bytes::from(vec![2])));
}

#[tokio::test]
async fn what_cannot_be_delivered_fails_as_unreachable() {
    let (one, other) = pair(PeersConfig::default(), |_| {});
    let unknown = soon(one.call(NodeId::new(3), outgoing(ECHO, vec![1]))).await;
    assert_eq!(unknown, Err(PeerError::Unreachable));
    // A port on which nobody listens.
    let closed = std::net::TcpListener::bind(any_port()).unwrap().local_addr().unwrap();
    one.set_address(NodeId::new(3), closed);
    assert_eq!(soon(one.call(NodeId::new(3), outgoing(ECHO, vec![1]))).await, Err(PeerError::Unreachable));
    eventually(&one, two()).await;
    one.forget_address(two());
    assert_eq!(soon(one.call(two(), outgoing(ECHO, vec![1]))).await, Err(PeerError::Unreachable));
    until(|| other.inner.accepted.lock().counts().1 == 0).await;
    assert_eq!(one.live_session(two()), None);
}

#[test]
fn a_number_has_one_service() {
    let mut services = services(|_| {});
    assert!(services.register(ECHO, "other", Arc::new(echo)).unwrap_err().to_string().contains("echo and other"));
}

type Hook = Box<dyn FnOnce() + Send>;

/// The real world, in which something happens at the moment when a timer is set. A driver sets its
/// timer after its last look for output and before it goes to sleep.
#[derive(Clone, Default)]
struct Interrupted {
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Runtime for Interrupted {
    fn now(&self) -> Instant {
        TokioRuntime.now()
    }

    fn wall_clock(&self) -> UnixMicros {
        TokioRuntime.wall_clock()
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        TokioRuntime.fill_random(bytes)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        TokioRuntime.spawn(task);
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let hook = self.hook.lock().take();
        if let Some(hook) = hook {
            hook();
        }
        TokioRuntime.sleep_until(at)
    }

    fn start_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        TokioRuntime.start_pool(name, threads, jobs_max)
    }

    fn start_periodic(
        &self,
        name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        TokioRuntime.start_periodic(name, interval, round)
    }
}

#[tokio::test]
async fn a_request_that_comes_while_the_driver_goes_to_sleep_is_sent() {
    let mut config = PeersConfig::default();
    // No ping wakes the driver.
    (config.mux.ping_interval_us, config.mux.silence_max_us) = (1_000_000_000, 2_000_000_000);
    let held = Held::default();
    let world = Interrupted::default();
    let (one, _) = start_in(
        (Arc::new(world.clone()), Arc::new(TcpNetwork::default())),
        &Who::node(1),
        services(|_| {}),
        config.clone(),
        any_port(),
    );
    let (_two, address) = start(&Who::node(2), services(hold(&held)), config, any_port());
    one.set_address(two(), address);
    eventually(&one, two()).await;
    let (caller, (give, take)) = (one.clone(), tokio::sync::oneshot::channel());
    *world.hook.lock() = Some(Box::new(move || {
        let brief = Outgoing { deadline: Instant::now() + PATIENCE / 3, ..outgoing(ECHO, vec![5]) };
        let mut call = Box::pin(async move { caller.call(two(), brief).await });
        assert_eq!((&mut call).now_or_never(), None, "it is queued");
        let _taken = give.send(call);
    }));
    // The deadline of this call is the earliest and sets the timer anew. Nobody answers it.
    let caller = one.clone();
    let earlier = Outgoing { deadline: Instant::now() + PATIENCE / 2, ..outgoing(HOLD, vec![1]) };
    let unanswered = tokio::spawn(async move { caller.call(two(), earlier).await });
    let call = soon(take).await.unwrap_or_else(|_| panic!("the timer was not set"));
    assert_eq!(soon(call).await, Ok(Bytes::from(vec![5])));
    unanswered.abort();
}
