//! All streams of a world.

use super::links::Links;
use crate::random::Random;
use crate::world::{Event, HostId, HostKey, Inner};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// The bytes that a stream holds in one direction, before the writer has to wait.
const WINDOW_BYTES: usize = 256 << 10;
/// How long a lost segment takes to be sent again.
const SENT_AGAIN_NS: std::ops::Range<u64> = 200_000_000..1_000_000_000;
/// One of so many lost segments ends its connection.
const BREAKS_ONE_IN: u64 = 8;
/// How long a healed link takes until something is sent again over it, at most.
const GOES_ON_NS_MAX: u64 = 400_000_000;

/// One end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndId {
    pub(super) stream: u64,
    pub(super) side: usize,
}

enum Segment {
    Bytes(Bytes),
    End,
}

/// What one process has of a stream.
struct End {
    on: HostKey,
    /// What it has sent and what has not arrived.
    on_the_way: VecDeque<Segment>,
    on_the_way_bytes: usize,
    /// When the last segment arrives at the earliest: segments do not overtake each other.
    busy_until_ns: u64,
    /// A delivery is scheduled.
    is_moving: bool,
    /// What has arrived and was not read.
    arrived: VecDeque<Bytes>,
    arrived_bytes: usize,
    peer_has_ended: bool,
    is_reset: bool,
    is_dropped: bool,
    has_sent_end: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl End {
    const fn new(on: HostKey) -> Self {
        Self {
            on,
            on_the_way: VecDeque::new(),
            on_the_way_bytes: 0,
            busy_until_ns: 0,
            is_moving: false,
            arrived: VecDeque::new(),
            arrived_bytes: 0,
            peer_has_ended: false,
            is_reset: false,
            is_dropped: false,
            has_sent_end: false,
            reader: None,
            writer: None,
        }
    }
}

/// A listener, and the connections that it has not accepted.
pub(super) struct Listening {
    pub(super) on: HostKey,
    pub(super) waiting: VecDeque<(EndId, SocketAddr)>,
    pub(super) acceptor: Option<Waker>,
}

#[derive(Default)]
pub(super) struct State {
    streams: BTreeMap<u64, [End; 2]>,
    next_stream: u64,
    pub(super) listeners: BTreeMap<SocketAddr, Listening>,
    has_power: Vec<bool>,
}

/// What a read finds.
pub(super) enum ReadEnd {
    Bytes(Bytes),
    End,
    Reset,
    Nothing,
}

/// All streams.
pub(crate) struct Streams {
    pub(super) world: Arc<Inner>,
    pub(super) links: Arc<Mutex<Links>>,
    state: Mutex<State>,
    this: Weak<Self>,
}

impl Streams {
    pub(super) fn new(world: Arc<Inner>, links: Arc<Mutex<Links>>, hosts: usize) -> Arc<Self> {
        let state = Mutex::new(State { has_power: vec![true; hosts + 1], ..State::default() });
        Arc::new_cyclic(|this| Self { world, links, state, this: this.clone() })
    }

    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock())
    }

    pub(super) fn has_power(&self, host: HostId) -> bool {
        self.with(|state| state.has_power[host.0])
    }

    /// A stream between two processes.
    pub(super) fn open(&self, from: HostKey, to: HostKey) -> (EndId, EndId) {
        self.with(|state| {
            let stream = state.next_stream;
            state.next_stream += 1;
            state.streams.insert(stream, [End::new(from), End::new(to)]);
            (EndId { stream, side: 0 }, EndId { stream, side: 1 })
        })
    }

    pub(super) fn read(&self, end: EndId, bytes_max: usize, waker: &Waker) -> ReadEnd {
        let (found, writer) = self.with(|state| {
            let Some(ends) = state.streams.get_mut(&end.stream) else { return (ReadEnd::Reset, None) };
            let here = &mut ends[end.side];
            let Some(first) = here.arrived.front_mut() else {
                if here.is_reset {
                    return (ReadEnd::Reset, None);
                }
                if here.peer_has_ended {
                    return (ReadEnd::End, None);
                }
                here.reader = Some(waker.clone());
                return (ReadEnd::Nothing, None);
            };
            let bytes = first.split_to(bytes_max.min(first.len()));
            if first.is_empty() {
                here.arrived.pop_front();
            }
            here.arrived_bytes -= bytes.len();
            (ReadEnd::Bytes(bytes), ends[1 - end.side].writer.take())
        });
        if let Some(writer) = writer {
            writer.wake();
        }
        found
    }

    /// Sends bytes. Returns how many, 0 if the writer has to wait; none if the stream is broken.
    pub(super) fn write(&self, end: EndId, bytes: &[u8], waker: &Waker) -> Option<usize> {
        let (sent, moves) = self.with(|state| {
            let Some(ends) = state.streams.get_mut(&end.stream) else { return (None, false) };
            let held_bytes = ends[end.side].on_the_way_bytes + ends[1 - end.side].arrived_bytes;
            let here = &mut ends[end.side];
            if here.is_reset || here.has_sent_end {
                return (None, false);
            }
            let room = WINDOW_BYTES.saturating_sub(held_bytes);
            if room == 0 {
                here.writer = Some(waker.clone());
                return (Some(0), false);
            }
            let count = room.min(bytes.len());
            here.on_the_way.push_back(Segment::Bytes(Bytes::copy_from_slice(&bytes[..count])));
            here.on_the_way_bytes += count;
            (Some(count), !std::mem::replace(&mut here.is_moving, true))
        });
        if moves {
            self.send(end);
        }
        sent
    }

    /// Sends the end of the stream.
    pub(super) fn end(&self, end: EndId) {
        let moves = self.with(|state| {
            let Some(ends) = state.streams.get_mut(&end.stream) else { return false };
            let here = &mut ends[end.side];
            if here.is_reset || std::mem::replace(&mut here.has_sent_end, true) {
                return false;
            }
            here.on_the_way.push_back(Segment::End);
            !std::mem::replace(&mut here.is_moving, true)
        });
        if moves {
            self.send(end);
        }
    }

    /// The process has no use for its end any more.
    pub(super) fn drop_end(&self, end: EndId) {
        self.end(end);
        self.with(|state| {
            let Some(ends) = state.streams.get_mut(&end.stream) else { return };
            ends[end.side].is_dropped = true;
            if ends.iter().all(|end| end.is_dropped) {
                state.streams.remove(&end.stream);
            }
        });
    }

    /// Schedules the arrival of the first segment that an end has sent.
    fn send(&self, end: EndId) {
        let Some((from, to)) = self.hosts_of(end) else { return };
        let now_ns = self.world.clock.now_ns();
        let link = self.links.lock().link(from.host, to.host);
        let (delay_ns, is_lost) = self.world.random(|random: &mut Random| {
            let is_lost = random.within(0..1000) < link.lost_per_mille;
            let again_ns = if is_lost { random.within(SENT_AGAIN_NS) } else { 0 };
            (link.delay_ns(random) + again_ns, is_lost)
        });
        if is_lost {
            self.links.lock().counts.lost += 1;
            if self.world.random(|random| random.within(0..BREAKS_ONE_IN)) == 0 {
                self.reset(end.stream, None);
                return;
            }
        }
        let at_ns = self.with(|state| {
            let ends = state.streams.get_mut(&end.stream)?;
            let here = &mut ends[end.side];
            here.busy_until_ns = here.busy_until_ns.max(now_ns + delay_ns);
            Some(here.busy_until_ns)
        });
        let Some(at_ns) = at_ns else { return };
        let this = self.this.clone();
        let arrive = move || {
            if let Some(this) = this.upgrade() {
                this.arrive(end);
            }
        };
        self.world.schedule(at_ns, Event::World(end.stream << 1 | end.side as u64, Box::new(arrive)));
    }

    fn hosts_of(&self, end: EndId) -> Option<(HostKey, HostKey)> {
        self.with(|state| state.streams.get(&end.stream).map(|ends| (ends[end.side].on, ends[1 - end.side].on)))
    }

    /// All segments that an end has sent arrive, if the link lets them pass.
    fn arrive(&self, end: EndId) {
        let Some((from, to)) = self.hosts_of(end) else { return };
        {
            let mut links = self.links.lock();
            if links.link(from.host, to.host).is_cut || !self.has_power(to.host) {
                links.counts.held_up += 1;
                drop(links);
                // It stays on the way until the link is healed.
                self.with(|state| {
                    if let Some(ends) = state.streams.get_mut(&end.stream) {
                        ends[end.side].is_moving = false;
                    }
                });
                return;
            }
        }
        if !self.world.is_alive(to) {
            self.reset(end.stream, None);
            return;
        }
        let wakers = self.with(|state| {
            let Some(ends) = state.streams.get_mut(&end.stream) else { return [None, None] };
            let here = &mut ends[end.side];
            here.is_moving = false;
            here.on_the_way_bytes = 0;
            let segments = std::mem::take(&mut here.on_the_way);
            let writer = here.writer.take();
            let there = &mut ends[1 - end.side];
            if there.is_dropped {
                return [writer, None];
            }
            for segment in segments {
                match segment {
                    Segment::Bytes(bytes) => {
                        there.arrived_bytes += bytes.len();
                        there.arrived.push_back(bytes);
                    }
                    Segment::End => there.peer_has_ended = true,
                }
            }
            [writer, there.reader.take()]
        });
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Breaks a stream for both ends, or for one.
    fn reset(&self, stream: u64, side: Option<usize>) {
        let wakers = self.with(|state| {
            let Some(ends) = state.streams.get_mut(&stream) else { return Vec::new() };
            let mut wakers = Vec::new();
            for (_, end) in ends.iter_mut().enumerate().filter(|(at, _)| side.is_none_or(|side| side == *at)) {
                end.is_reset = true;
                end.on_the_way.clear();
                end.on_the_way_bytes = 0;
                wakers.extend(end.reader.take());
                wakers.extend(end.writer.take());
            }
            wakers
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Lets everything that was held up move again.
    pub(super) fn go_on(&self) {
        let waiting: Vec<EndId> = self.with(|state| {
            let mut waiting = Vec::new();
            for (stream, ends) in &mut state.streams {
                for (side, end) in ends.iter_mut().enumerate() {
                    if !end.is_moving && !end.on_the_way.is_empty() {
                        end.is_moving = true;
                        waiting.push(EndId { stream: *stream, side });
                    }
                }
            }
            waiting
        });
        for end in waiting {
            let delay_ns = self.world.random(|random| random.within(1..GOES_ON_NS_MAX));
            let this = self.this.clone();
            let go_on = move || {
                if let Some(this) = this.upgrade() {
                    this.arrive(end);
                }
            };
            let at_ns = self.world.clock.now_ns() + delay_ns;
            self.world.schedule(at_ns, Event::World(end.stream << 1 | end.side as u64, Box::new(go_on)));
        }
    }

    pub(super) fn process_ended(&self, host: HostId, has_power: bool) {
        let gone = self.with(|state| {
            state.has_power[host.0] = has_power;
            let dead: Vec<SocketAddr> =
                state.listeners.iter().filter(|(_, l)| l.on.host == host).map(|(address, _)| *address).collect();
            let dead: Vec<Listening> = dead.iter().filter_map(|address| state.listeners.remove(address)).collect();
            let streams: Vec<u64> = state
                .streams
                .iter()
                .filter(|(_, ends)| ends.iter().any(|end| end.on.host == host))
                .map(|(stream, _)| *stream)
                .collect();
            (dead, streams)
        });
        for stream in gone.1 {
            // The operating system tells the other ends, if it can.
            let side = if has_power { None } else { self.side_of(stream, host) };
            self.reset(stream, side);
        }
        drop(gone.0);
    }

    fn side_of(&self, stream: u64, host: HostId) -> Option<usize> {
        self.with(|state| state.streams.get(&stream)?.iter().position(|end| end.on.host == host))
    }

    pub(super) fn process_began(&self, host: HostId) {
        self.with(|state| state.has_power[host.0] = true);
        // What was sent to the machine while it was off reaches it now, and is refused.
        self.go_on();
    }
}
