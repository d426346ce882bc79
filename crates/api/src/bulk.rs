//! Bulk work of connections: listings, queries, the objects of ranges, and large values. It takes
//! turns on each network thread, so that other requests of the thread wait for one turn at most.
//!
//! A thread would otherwise let each connection go on until it has to wait, and would look for new
//! requests only after all of them. With turns, one piece of bulk work is under way at a time, it
//! gives way after [`TURN`], and the thread looks at its sockets between two turns.
//!
//! Who has had the least time of the thread has the next turn, first among the addresses of clients
//! and then among the connections of an address. Nobody holds a turn while it waits for a client,
//! for a store or for another node. On a busy machine there is time between the turns of work that
//! takes long ([`short_pause_after`]).

use ombak_runtime::{FairQueue, Tenant, Ticket, short_pause_after};
use parking_lot::Mutex;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep};

/// How long a turn lasts. It is the longest time that a short request waits for bulk work, beside
/// what a single step takes. A change of turns costs about two microseconds.
const TURN: Duration = Duration::from_micros(200);

/// The highest number of bytes that one read, write or move of a large value takes. It takes about
/// half a turn, most of it for memory that the process did not have before.
pub(crate) const STEP_BYTES: usize = 256 << 10;

/// How much of its thread a piece of work has had that takes long. A large value takes less.
const LONG: Duration = Duration::from_millis(5);

/// A shorter time between two turns is none: a timer measures milliseconds.
const BETWEEN_MIN: Duration = Duration::from_micros(300);

thread_local! {
    static TURNS: Arc<Turns> = Arc::default();
    /// When the present turn of bulk work on this thread began.
    static TURN_BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Does bulk work of a connection in turns. Work within such work has the same turn. Whoever awaits
/// it must poll it whenever it is woken: nobody else has a turn between its wake and its poll.
pub(crate) async fn in_turns<F: Future>(tenant: Tenant, work: F) -> F::Output {
    let mut place = Place { turns: TURNS.with(Arc::clone), waits: None, has_had: Duration::ZERO };
    let mut work = pin!(work);
    poll_fn(|cx| {
        if TURN_BEGAN.get().is_some() {
            return work.as_mut().poll(cx);
        }
        if place.poll_turn(tenant, cx).is_pending() {
            return Poll::Pending;
        }
        let began = Instant::now();
        let running = Running { turns: &place.turns, tenant, began, is_long: place.has_had >= LONG };
        TURN_BEGAN.set(Some(began));
        let polled = work.as_mut().poll(cx);
        drop(running);
        place.has_had += began.elapsed();
        polled
    })
    .await
}

/// Ends the turn of bulk work if it has lasted long enough. Elsewhere this does nothing.
pub(crate) async fn give_way() {
    if TURN_BEGAN.get().is_some_and(|began| began.elapsed() >= TURN) {
        yield_now().await;
    }
}

/// Moves received bytes to memory with this capacity, which is larger than their number. The move
/// gives way between its parts.
pub(crate) async fn move_to_larger(bytes: Vec<u8>, capacity: usize) -> Vec<u8> {
    let mut larger = Vec::with_capacity(capacity);
    for part in bytes.chunks(STEP_BYTES) {
        larger.extend_from_slice(part);
        give_way().await;
    }
    larger
}

/// The turns of one thread.
#[derive(Default)]
struct Turns(Mutex<Line>);

#[derive(Default)]
struct Line {
    is_taken: bool,
    waiting: FairQueue<Arc<Waiter>>,
    /// The time between the last turn and the next one.
    between: Option<Pin<Box<Sleep>>>,
}

/// Work that waits for its turn.
struct Waiter {
    state: Mutex<WaiterState>,
}

struct WaiterState {
    has_turn: bool,
    waker: Waker,
}

impl Turns {
    /// Takes the turn, if nobody has it.
    fn take(&self, tenant: Tenant, waker: &Waker) -> Option<(Ticket, Arc<Waiter>)> {
        let mut line = self.0.lock();
        if !line.is_taken {
            line.is_taken = true;
            return None;
        }
        let waiter = Arc::new(Waiter { state: Mutex::new(WaiterState { has_turn: false, waker: waker.clone() }) });
        let ticket = line.waiting.push(tenant, waiter.clone());
        Some((ticket, waiter))
    }

    /// Ends a turn. The next one begins after the runtime has looked at its sockets: it wakes who
    /// yields only then. So what has arrived is answered before, and whatever bulk work was woken
    /// meanwhile is in the queue when the next is chosen.
    /// With a time between turns, it begins after that.
    fn end(self: &Arc<Self>, tenant: Tenant, took: Duration, between: Duration) {
        self.0.lock().waiting.charge(tenant, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        let then = Waker::from(Arc::clone(self));
        let mut cx = Context::from_waker(&then);
        if between < BETWEEN_MIN {
            let _ = pin!(yield_now()).poll(&mut cx);
        } else {
            let mut timer = Box::pin(sleep(between));
            if timer.as_mut().poll(&mut cx).is_ready() {
                return self.give_next();
            }
            self.0.lock().between = Some(timer);
        }
    }

    /// Gives the turn to whoever has had the least, if anybody waits.
    fn give_next(&self) {
        let next = {
            let mut line = self.0.lock();
            let next = line.waiting.pop();
            line.is_taken = next.is_some();
            next
        };
        let Some((_, waiter)) = next else { return };
        let waker = {
            let mut state = waiter.state.lock();
            state.has_turn = true;
            state.waker.clone()
        };
        waker.wake();
    }
}

impl Wake for Turns {
    fn wake(self: Arc<Self>) {
        self.give_next();
    }
}

/// The place of one piece of work among the turns of its thread.
struct Place {
    turns: Arc<Turns>,
    waits: Option<(Ticket, Arc<Waiter>)>,
    /// The time of its turns so far.
    has_had: Duration,
}

impl Place {
    fn poll_turn(&mut self, tenant: Tenant, cx: &mut Context<'_>) -> Poll<()> {
        if self.waits.is_none() {
            self.waits = self.turns.take(tenant, cx.waker());
        }
        if let Some((_, waiter)) = &self.waits {
            let mut state = waiter.state.lock();
            if !state.has_turn {
                state.waker.clone_from(cx.waker());
                return Poll::Pending;
            }
        }
        self.waits = None;
        Poll::Ready(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((ticket, waiter)) = self.waits.take() else { return };
        let had_not_come = self.turns.0.lock().waiting.remove(&ticket).is_some();
        if !had_not_come && waiter.state.lock().has_turn {
            self.turns.give_next();
        }
    }
}

/// A turn that is under way; it ends also if the work panics.
struct Running<'a> {
    turns: &'a Arc<Turns>,
    tenant: Tenant,
    began: Instant,
    /// Whether the work has had much of its thread already.
    is_long: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        TURN_BEGAN.set(None);
        let took = self.began.elapsed();
        // Others that want the processor have it now, and not only at the scheduler's next tick:
        // clients on this machine, and the other threads of the node.
        let between = short_pause_after(took);
        self.turns.end(self.tenant, took, if self.is_long { between } else { Duration::ZERO });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::runtime::Builder;
    use tokio::task::{LocalSet, spawn_local};

    const fn tenant(group: u64, member: u64) -> Tenant {
        Tenant { group, member }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, work)
    }

    fn spin(duration: Duration) {
        let began = Instant::now();
        while began.elapsed() < duration {}
    }

    /// Works for some turns, and notes each.
    async fn turns(of: Tenant, count: usize, log: Rc<RefCell<Vec<Tenant>>>) {
        in_turns(of, async {
            for _ in 0..count {
                log.borrow_mut().push(of);
                spin(TURN);
                give_way().await;
            }
        })
        .await;
    }

    #[test]
    fn addresses_have_equal_shares_whatever_their_connections() {
        let log = Rc::new(RefCell::new(Vec::new()));
        run(async {
            let many = (0..10).map(|member| spawn_local(turns(tenant(1, member), 100, log.clone())));
            let many: Vec<_> = many.collect();
            let one = spawn_local(turns(tenant(2, 0), 20, log.clone()));
            one.await.unwrap();
            many.into_iter().for_each(|task| task.abort());
        });
        let of_many = log.borrow().iter().filter(|tenant| tenant.group == 1).count();
        assert!((10..=40).contains(&of_many), "{of_many}");
    }

    #[test]
    fn what_arrives_is_seen_after_one_turn() {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            let log = Rc::new(RefCell::new(Vec::new()));
            let bulk = (0..10).map(|member| spawn_local(turns(tenant(1, member), 1_000, log.clone())));
            let bulk: Vec<_> = bulk.collect();
            let seen = log.clone();
            let request = spawn_local(async move {
                server.readable().await.unwrap();
                seen.borrow().len()
            });
            while log.borrow().len() < 20 {
                tokio::task::yield_now().await;
            }
            tokio::io::AsyncWriteExt::write_all(&mut client, b"get").await.unwrap();
            let sent = log.borrow().len();
            let turns_between = request.await.unwrap().saturating_sub(sent);
            assert!(turns_between <= 2, "{turns_between}");
            bulk.into_iter().for_each(|task| task.abort());
        });
    }

    #[test]
    fn the_next_turn_waits_for_the_time_between_turns() {
        const BETWEEN: Duration = Duration::from_millis(20);
        run(async {
            let turns = Arc::<Turns>::default();
            let place = || Place { turns: turns.clone(), waits: None, has_had: Duration::ZERO };
            let (mut first, mut second) = (place(), place());
            poll_fn(|cx| first.poll_turn(tenant(1, 0), cx)).await;
            let began = Instant::now();
            turns.end(tenant(1, 0), TURN, BETWEEN);
            poll_fn(|cx| second.poll_turn(tenant(2, 0), cx)).await;
            assert!(began.elapsed() >= BETWEEN);
            // Without one, the next turn follows when the runtime has looked at its sockets.
            turns.end(tenant(2, 0), TURN, Duration::ZERO);
            poll_fn(|cx| first.poll_turn(tenant(1, 0), cx)).await;
        });
    }

    #[test]
    fn nobody_holds_a_turn_that_waits_or_has_gone() {
        run(async {
            let log = Rc::new(RefCell::new(Vec::new()));
            let waiting = spawn_local(in_turns(tenant(1, 0), std::future::pending::<()>()));
            turns(tenant(2, 0), 3, log.clone()).await;
            // One that has been given the turn goes before it begins.
            let gone = spawn_local(turns(tenant(3, 0), 1_000, log.clone()));
            tokio::task::yield_now().await;
            let mut place = Box::pin(turns(tenant(3, 1), 1, log.clone()));
            let polled = futures_util::poll!(place.as_mut());
            assert!(polled.is_pending() || log.borrow().contains(&tenant(3, 1)));
            gone.abort();
            tokio::task::yield_now().await;
            drop(place);
            turns(tenant(4, 0), 3, log.clone()).await;
            waiting.abort();
            assert_eq!(log.borrow().iter().filter(|of| of.group == 4).count(), 3);
        });
    }

    #[test]
    fn work_within_work_has_the_same_turn() {
        let done = run(in_turns(
            tenant(1, 0),
            in_turns(tenant(1, 0), async {
                give_way().await;
                7
            }),
        ));
        assert_eq!(done, 7);
    }
}
