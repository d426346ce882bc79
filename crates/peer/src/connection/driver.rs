//! The task of a connection.

use super::WAKE_UP_BYTES;
use super::call::Slot;
use super::service::{Incoming, Responder, Services};
use super::shared::{NodeClock, Shared};
use crate::counters::PeerCounters;
use crate::error::RefusalCode;
use crate::frame::{GoodbyeReason, PAYLOAD_BYTES_MAX};
use crate::handshake::RemotePeer;
use crate::mux::{ConnectionError, Event, OutputBuffer};
use crate::sessions::SessionTicket;
use bytes::{Bytes, BytesMut};
use ombak_runtime::{BoxFuture, Stream};
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt, AsyncWrite};

/// How many times a driver reads and writes before it lets other tasks of its thread run.
const ROUNDS_MAX: usize = 16;

/// How many pieces one vectored write has at most.
const SLICES_MAX: usize = 64;

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionEnd {
    #[error("the peer closed the connection")]
    Closed,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Broken(#[from] ConnectionError),
    #[error("the peer said goodbye ({reason:?}): {text}")]
    PeerSaidGoodbye { reason: GoodbyeReason, text: String },
    #[error("this node closed the connection")]
    SaidGoodbye,
}

/// Runs one connection.
pub(crate) struct Driver {
    stream: Box<dyn Stream>,
    shared: Arc<Shared>,
    services: Arc<Services>,
    peer: Arc<RemotePeer>,
    clock: Arc<NodeClock>,
    lifetime_us: i64,
    counters: Arc<PeerCounters>,
    arrived: BytesMut,
    out: OutputBuffer,
    events: Vec<Event<Arc<Slot>>>,
    timer: Option<(i64, BoxFuture<'static, ()>)>,
    peer_said: Option<(GoodbyeReason, String)>,
    _ticket: SessionTicket,
}

/// What a driver is made of.
pub(crate) struct DriverParts {
    pub(crate) stream: Box<dyn Stream>,
    /// What was read behind the handshake.
    pub(crate) arrived: BytesMut,
    pub(crate) shared: Arc<Shared>,
    pub(crate) services: Arc<Services>,
    pub(crate) peer: Arc<RemotePeer>,
    pub(crate) clock: Arc<NodeClock>,
    pub(crate) lifetime_us: i64,
    pub(crate) counters: Arc<PeerCounters>,
    /// The peer counts as connected until this is dropped.
    pub(crate) ticket: SessionTicket,
}

impl Driver {
    pub(crate) fn new(parts: DriverParts) -> Self {
        Self {
            stream: parts.stream,
            shared: parts.shared,
            services: parts.services,
            peer: parts.peer,
            clock: parts.clock,
            lifetime_us: parts.lifetime_us,
            counters: parts.counters,
            arrived: parts.arrived,
            out: OutputBuffer::default(),
            events: Vec::new(),
            timer: None,
            peer_said: None,
            _ticket: parts.ticket,
        }
    }

    /// Runs until the connection ends. Then all calls have ended, too.
    pub(crate) async fn run(mut self) -> ConnectionEnd {
        let first = if self.arrived.is_empty() { Ok(()) } else { self.on_arrived() };
        let end = match first {
            Ok(()) => poll_fn(|cx| self.poll(cx)).await,
            Err(end) => end,
        };
        self.close();
        end
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        self.shared.drive(|state| state.idle_driver = None);
        for _ in 0..ROUNDS_MAX {
            match self.round(cx) {
                Ok(true) => {}
                Ok(false) if self.go_idle(cx) => return Poll::Pending,
                Ok(false) => {}
                Err(end) => {
                    self.say_why(&end, cx);
                    return Poll::Ready(end);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads and writes once. Returns whether anything happened.
    fn round(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        let has_read = self.read(cx)?;
        self.on_time()?;
        let has_written = self.write(cx)?;
        Ok(has_read || has_written || self.timer_fires(cx))
    }

    /// Reads what is there, and hands it on.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        if self.arrived.capacity() - self.arrived.len() < PAYLOAD_BYTES_MAX {
            self.arrived.reserve(WAKE_UP_BYTES);
        }
        let read = pin!(self.stream.read_buf(&mut self.arrived)).poll(cx);
        let bytes = match read {
            Poll::Pending => return Ok(false),
            Poll::Ready(read) => read?,
        };
        if bytes == 0 {
            return Err(ConnectionEnd::Closed);
        }
        self.counters.received(bytes);
        self.on_arrived()?;
        Ok(true)
    }

    fn on_arrived(&mut self) -> Result<(), ConnectionEnd> {
        let now_us = self.clock.now_us();
        let (arrived, events) = (&mut self.arrived, &mut self.events);
        let received = self.shared.drive(|state| state.mux.receive(arrived, now_us, events));
        self.dispatch();
        received?;
        match self.peer_said.take() {
            Some((reason, text)) => Err(ConnectionEnd::PeerSaidGoodbye { reason, text }),
            None => Ok(()),
        }
    }

    /// Writes what is queued, in as few calls as possible.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        if self.out.is_empty() {
            self.fill();
        }
        if self.out.is_empty() {
            return Ok(false);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let filled = self.out.fill_slices(&mut slices);
        let written = match Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..filled]) {
            Poll::Pending => return Ok(false),
            Poll::Ready(written) => written?,
        };
        if written == 0 {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        self.out.advance(written);
        self.counters.sent(written);
        if self.out.is_empty() {
            let _flushed = Pin::new(&mut self.stream).poll_flush(cx)?;
            if self.shared.drive(|state| state.mux.said_goodbye()) {
                let _shut = Pin::new(&mut self.stream).poll_shutdown(cx)?;
                return Err(ConnectionEnd::SaidGoodbye);
            }
        }
        Ok(true)
    }

    /// Ends what is due, also while nothing can be written.
    fn on_time(&mut self) -> Result<(), ConnectionEnd> {
        let (now_us, events) = (self.clock.now_us(), &mut self.events);
        let alive = self.shared.drive(|state| state.mux.on_time(now_us, events));
        self.dispatch();
        Ok(alive?)
    }

    /// Takes the next frames.
    fn fill(&mut self) {
        let now_us = self.clock.now_us();
        let (out, events) = (&mut self.out, &mut self.events);
        let frames = self.shared.drive(|state| {
            state.mux.fill(now_us, WAKE_UP_BYTES, out, events);
            state.mux.take_frame_counts()
        });
        self.counters.frames(frames);
        self.dispatch();
    }

    /// Sets the timer to the next moment at which something is due. Returns whether it has come.
    fn timer_fires(&mut self, cx: &mut Context<'_>) -> bool {
        let can_write = self.out.is_empty();
        let next_us = self.shared.drive(|state| state.mux.next_time_us(can_write));
        if self.timer.as_ref().is_none_or(|(at_us, _)| *at_us > next_us) {
            let at = self.clock.instant_of(next_us.saturating_add(1));
            self.timer = Some((next_us, self.clock.runtime().sleep_until(at)));
        }
        let Some((_, timer)) = &mut self.timer else { return false };
        let fires = timer.as_mut().poll(cx).is_ready();
        if fires {
            self.timer = None;
        }
        fires
    }

    /// Waits unless somebody has queued something since the last look.
    fn go_idle(&mut self, cx: &mut Context<'_>) -> bool {
        let now_us = self.clock.now_us();
        let can_write = self.out.is_empty();
        self.shared.drive(|state| {
            if can_write && state.mux.has_output(now_us) {
                return false;
            }
            state.idle_driver = Some(cx.waker().clone());
            true
        })
    }

    /// Hands on what has happened.
    fn dispatch(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                Event::Request(request) => {
                    self.counters.served();
                    let responder = Responder::new(Arc::clone(&self.shared), request.stream);
                    match self.services.get(request.service) {
                        Some(service) => {
                            let (peer, clock) = (Arc::clone(&self.peer), Arc::clone(&self.clock));
                            service.handle(Incoming::new(request, peer, clock, self.lifetime_us), responder);
                        }
                        None => responder.refuse(RefusalCode::UNKNOWN_SERVICE, Bytes::new()),
                    }
                }
                Event::Answered { token, response } => token.end(response),
                Event::Item { token, item } => token.push_item(item),
                Event::Room { stream } => {
                    if let Some(producer) = self.shared.drive(|state| state.producers.remove(&stream)) {
                        producer.wake();
                    }
                }
                Event::Goodbye { reason, text } => self.peer_said = Some((reason, text)),
            }
        }
        // The vector keeps its memory.
        self.events = events;
    }

    /// Tells a peer that broke the protocol why the connection ends, if that needs no waiting.
    fn say_why(&mut self, end: &ConnectionEnd, cx: &mut Context<'_>) {
        let ConnectionEnd::Broken(error) = end else { return };
        let reason = match error {
            ConnectionError::Silent => GoodbyeReason::Silent,
            _ => GoodbyeReason::ProtocolError,
        };
        self.shared.drive(|state| state.mux.say_goodbye(reason, error.to_string()));
        let (now_us, out, events) = (self.clock.now_us(), &mut self.out, &mut self.events);
        self.shared.drive(|state| state.mux.fill(now_us, 0, out, events));
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let filled = self.out.fill_slices(&mut slices);
        // The connection ends in any case.
        let _written = Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..filled]);
    }

    fn close(&mut self) {
        let events = &mut self.events;
        let producers = self.shared.drive(|state| {
            state.is_closed = true;
            state.mux.close(events);
            std::mem::take(&mut state.producers)
        });
        self.dispatch();
        producers.into_values().for_each(std::task::Waker::wake);
    }
}

impl Drop for Driver {
    /// A driver that is dropped in the middle, as at the end of a runtime, ends its calls as well.
    fn drop(&mut self) {
        if !self.shared.is_closed() {
            self.close();
        }
    }
}
