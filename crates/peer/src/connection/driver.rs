//! The task of a connection.

use super::WAKE_UP_BYTES;
use super::call::Slot;
use super::service::{Incoming, Origin, Responder, Services};
use super::shared::{NodeClock, Shared};
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

/// What a driver finds when it looks.
struct Looked {
    /// When something is due next, if all output is written.
    next_us: i64,
    /// Whether there is more to write than was taken.
    has_more_output: bool,
}

/// Runs one connection.
pub(crate) struct Driver {
    stream: Box<dyn Stream>,
    shared: Arc<Shared>,
    services: Arc<Services>,
    origin: Arc<Origin>,
    clock: Arc<NodeClock>,
    arrived: BytesMut,
    out: OutputBuffer,
    /// The stream may hold back something that was written: TLS does when the socket takes no more.
    is_unflushed: bool,
    events: Vec<Event<Arc<Slot>>>,
    timer: Option<(i64, BoxFuture<'static, ()>)>,
    /// Whether the last bytes to write end with a goodbye.
    said_goodbye: bool,
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
    pub(crate) peer: RemotePeer,
    pub(crate) clock: Arc<NodeClock>,
    pub(crate) lifetime_us: i64,
    /// The peer counts as connected until this is dropped.
    pub(crate) ticket: SessionTicket,
}

impl Driver {
    pub(crate) fn new(parts: DriverParts) -> Self {
        Self {
            stream: parts.stream,
            shared: parts.shared,
            services: parts.services,
            origin: Arc::new(Origin::new(parts.peer, Arc::clone(&parts.clock), parts.lifetime_us)),
            clock: parts.clock,
            arrived: parts.arrived,
            out: OutputBuffer::default(),
            is_unflushed: false,
            events: Vec::new(),
            timer: None,
            said_goodbye: false,
            peer_said: None,
            _ticket: parts.ticket,
        }
    }

    /// Runs until the connection ends. Then all calls have ended, too.
    pub(crate) async fn run(mut self) -> ConnectionEnd {
        let first = if self.arrived.is_empty() { Ok(()) } else { self.on_arrived(self.clock.now_us()) };
        let end = match first {
            Ok(()) => poll_fn(|cx| self.poll(cx)).await,
            Err(end) => end,
        };
        self.close();
        end
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        for _ in 0..ROUNDS_MAX {
            match self.round(cx) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(end) => {
                    self.say_why(&end, cx);
                    return Poll::Ready(end);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads and writes once. Returns whether there is more to do at once. Otherwise everything
    /// that can happen wakes the driver.
    fn round(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        let first_us = self.read(cx)?;
        // The second attempt mostly finds nothing, and then the stream wakes the driver.
        let second_us = if first_us.is_some() { self.read(cx)? } else { None };
        let has_more = second_us.is_some();
        let now_us = second_us.or(first_us).unwrap_or_else(|| self.clock.now_us());
        let looked = self.look(now_us, cx, !has_more)?;
        let has_written = self.write(cx).map_err(|end| self.last_word(end, cx))?;
        // What was not written is written further until the stream takes no more.
        let has_more_to_write = has_written && (looked.has_more_output || !self.out.is_empty());
        if has_more || has_more_to_write {
            return Ok(true);
        }
        let next_us = if self.out.is_empty() { looked.next_us } else { self.wait_for_room(cx) };
        Ok(self.timer_fires(next_us, cx))
    }

    /// Why the connection has ended, if it can be written to no more. A peer that closes has said
    /// before which requests it does not execute.
    fn last_word(&mut self, end: ConnectionEnd, cx: &mut Context<'_>) -> ConnectionEnd {
        match (&end, self.read(cx)) {
            (ConnectionEnd::Io(_), Err(said @ ConnectionEnd::PeerSaidGoodbye { .. })) => said,
            _ => end,
        }
    }

    /// Reads what is there, and hands it on. Returns when it was there, or `None` if there was
    /// nothing.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<Option<i64>, ConnectionEnd> {
        if self.arrived.capacity() - self.arrived.len() < PAYLOAD_BYTES_MAX {
            self.arrived.reserve(WAKE_UP_BYTES);
        }
        let read = pin!(self.stream.read_buf(&mut self.arrived)).poll(cx);
        let bytes = match read {
            Poll::Pending => return Ok(None),
            Poll::Ready(read) => read?,
        };
        if bytes == 0 {
            return Err(ConnectionEnd::Closed);
        }
        self.shared.counters().received(bytes);
        let now_us = self.clock.now_us();
        self.on_arrived(now_us)?;
        Ok(Some(now_us))
    }

    fn on_arrived(&mut self, now_us: i64) -> Result<(), ConnectionEnd> {
        let (arrived, events) = (&mut self.arrived, &mut self.events);
        let received = self.shared.drive(|state| {
            // What services answer at once need not wake the driver.
            state.idle_driver = None;
            state.mux.receive(arrived, now_us, events)
        });
        self.dispatch();
        received?;
        match self.peer_said.take() {
            Some((reason, text)) => Err(ConnectionEnd::PeerSaidGoodbye { reason, text }),
            None => Ok(()),
        }
    }

    /// Ends what is due, and takes the next frames if all earlier ones are written. If the driver
    /// `may_rest`, whatever is queued from now on wakes it. `now_us` may be some time ago, but not
    /// before the last bytes have arrived.
    fn look(&mut self, now_us: i64, cx: &mut Context<'_>, may_rest: bool) -> Result<Looked, ConnectionEnd> {
        let can_fill = self.out.is_empty();
        let (out, events) = (&mut self.out, &mut self.events);
        let (is_alive, frames, said_goodbye, looked) = self.shared.drive(|state| {
            let is_alive = state.mux.on_time(now_us, events);
            if can_fill && is_alive.is_ok() {
                state.mux.fill(now_us, WAKE_UP_BYTES, out, events);
            }
            state.idle_driver = may_rest.then(|| cx.waker().clone());
            let has_more_output = !can_fill || state.mux.has_output(now_us);
            let looked = Looked { next_us: state.mux.next_time_us(true), has_more_output };
            (is_alive, state.mux.take_frame_counts(), state.mux.said_goodbye(), looked)
        });
        self.shared.counters().frames(frames);
        self.said_goodbye = said_goodbye;
        self.dispatch();
        is_alive?;
        Ok(looked)
    }

    /// Writes what was taken, in as few calls as possible.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        if self.out.is_empty() {
            return self.flush(cx);
        }
        let stream = Pin::new(&mut self.stream);
        let written = match self.out.only_piece() {
            Some(piece) => stream.poll_write(cx, piece),
            None => write_pieces(stream, &self.out, cx),
        };
        let written = match written {
            Poll::Pending => return Ok(false),
            Poll::Ready(written) => written?,
        };
        if written == 0 {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        self.out.advance(written);
        self.shared.counters().sent(written);
        self.is_unflushed = true;
        if self.out.is_empty() {
            self.flush(cx)?;
        }
        Ok(true)
    }

    /// Lets go what the stream holds back. Returns whether anything happened.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        if !self.is_unflushed || Pin::new(&mut self.stream).poll_flush(cx)?.is_pending() {
            return Ok(false);
        }
        self.is_unflushed = false;
        if self.said_goodbye {
            let _shut = Pin::new(&mut self.stream).poll_shutdown(cx)?;
            return Err(ConnectionEnd::SaidGoodbye);
        }
        Ok(true)
    }

    /// Waits until the stream takes bytes again. New requests wake the driver meanwhile, because
    /// their time may end before that. Returns when something is due.
    fn wait_for_room(&self, cx: &mut Context<'_>) -> i64 {
        self.shared.drive(|state| {
            state.idle_driver = Some(cx.waker().clone());
            state.mux.next_time_us(false)
        })
    }

    /// Sets the timer to the next moment at which something is due. Returns whether it has come.
    fn timer_fires(&mut self, next_us: i64, cx: &mut Context<'_>) -> bool {
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

    /// Hands on what has happened.
    fn dispatch(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                Event::Request(request) => {
                    self.shared.counters().served();
                    let responder = Responder::new(Arc::clone(&self.shared), request.stream);
                    match self.services.get(request.service) {
                        Some(service) => {
                            service.handle(Incoming::new(request, Arc::clone(&self.origin)), responder);
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
        // The connection ends in any case.
        let _written = write_pieces(Pin::new(&mut self.stream), &self.out, cx);
    }

    fn close(&mut self) {
        let events = &mut self.events;
        let producers = self.shared.close(|state| {
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

/// Writes the first pieces of `out` at once.
fn write_pieces(
    stream: Pin<&mut Box<dyn Stream>>,
    out: &OutputBuffer,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let filled = out.fill_slices(&mut slices);
    stream.poll_write_vectored(cx, &slices[..filled])
}
