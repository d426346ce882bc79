//! One side of a connection.

use super::ITEM_COST_BYTES;
use super::body::Body;
use super::calls::{Calls, Ended, Needs, window_bytes};
use super::config::MuxConfig;
use super::event::{ConnectionError, Event, Response};
use super::heartbeat::Heartbeat;
use super::message::Message;
use super::output::OutputBuffer;
use super::schedule::Schedule;
use super::served::{Arrival, ItemRoom, ServedRequests};
use crate::clock::ClockSample;
use crate::error::PeerError;
use crate::frame::{
    AnswerHead, AnswerStatus, Frame, FrameKind, GoodbyeReason, Priority, RequestHead, StreamId, encode_frame,
    encode_header, next_frame,
};
use crate::identity::RingVersion;
use bytes::BytesMut;

/// The speed at which a slow link carries large bodies, in bytes for each microsecond.
const SLOW_LINK_BYTES_PER_US: i64 = 1;

/// A node that looks at a connection so much too late did not run, in microseconds.
const OWN_STOP_US_MIN: i64 = 500_000;

/// Which side of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opened the connection.
    Initiator,
    /// It accepted the connection.
    Responder,
}

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number of the service.
    pub service: u16,
    /// How urgent it is.
    pub priority: Priority,
    /// The version of the ring that the caller acts on.
    pub ring: RingVersion,
    /// When the request came into being, on this node's clock. A request that another node made and
    /// this one forwards was born there.
    pub born_us: i64,
    /// By when the request must have left as a whole, on this node's clock. Otherwise it ends with
    /// [`PeerError::Unreachable`], although its deadline may lie later.
    pub send_by_us: i64,
    /// When nobody needs the answer any more, on this node's clock.
    pub deadline_us: i64,
    /// The window of a streamed answer in bytes, or zero for a single answer. Half of it, less
    /// [`ITEM_COST_BYTES`], bounds the length of an item.
    pub window_bytes: usize,
    /// The body.
    pub body: Body,
}

/// Why an item of a streamed answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemRefused {
    /// The caller has to consume items first. [`Event::Room`] says when to try again.
    Full,
    /// The item is larger than half the window.
    TooLarge,
    /// The caller does not want items, or not any more.
    NotWanted,
}

/// One side of a connection. `T` is what callers give along with their requests.
#[derive(Debug)]
pub struct Mux<T> {
    side: Side,
    next_stream: u64,
    calls: Calls<T>,
    served: ServedRequests,
    schedule: Schedule,
    heartbeat: Heartbeat,
    silence: Silence,
    lifetime_us: i64,
    goodbye: Option<(GoodbyeReason, String)>,
    said_goodbye: bool,
    /// The last own request that the peer may have executed, once it has said goodbye.
    peer_took: Option<StreamId>,
    frames: FrameCounts,
}

/// Whether the peer answers anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// It does. Large bodies may delay an answer by this much.
    No { allowance_us: i64 },
    /// It leaves a ping unanswered. A request that somebody waits for is not taken.
    Yes,
}

impl Silence {
    const fn allowance_us(self) -> Option<i64> {
        match self {
            Self::No { allowance_us } => Some(allowance_us),
            Self::Yes => None,
        }
    }
}

/// How many frames a connection has received and written, goodbyes excepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames of the peer.
    pub received: u64,
    /// Own frames.
    pub written: u64,
}

impl<T: Clone> Mux<T> {
    /// A connection whose handshake has ended with `clock` as the first comparison of the clocks.
    pub fn new(side: Side, config: &MuxConfig, clock: ClockSample, now_us: i64) -> Self {
        Self {
            side,
            next_stream: if side == Side::Initiator { 1 } else { 2 },
            calls: Calls::new(config),
            served: ServedRequests::new(config),
            schedule: Schedule::default(),
            heartbeat: Heartbeat::new(config, clock, now_us),
            silence: Silence::No { allowance_us: 0 },
            lifetime_us: config.lifetime_us,
            goodbye: None,
            said_goodbye: false,
            peer_took: None,
            frames: FrameCounts::default(),
        }
    }

    /// How many frames there were since the last question.
    pub const fn take_frame_counts(&mut self) -> FrameCounts {
        std::mem::replace(&mut self.frames, FrameCounts { received: 0, written: 0 })
    }

    /// Takes a request to be sent. It fails at once with [`PeerError::Overload`] if a limit is
    /// reached, and otherwise ends with one [`Event::Answered`].
    pub fn call(&mut self, request: Request, token: T) -> Result<StreamId, PeerError> {
        if self.goodbye.is_some() || self.said_goodbye {
            return Err(PeerError::Unreachable);
        }
        if self.silence == Silence::Yes && request.priority == Priority::Request {
            return Err(PeerError::Unreachable);
        }
        let stream = StreamId(self.next_stream);
        let window_bytes = if request.window_bytes == 0 { 0 } else { window_bytes(request.window_bytes) };
        let needs = Needs {
            priority: request.priority,
            send_by_us: request.send_by_us,
            deadline_us: request.deadline_us,
            body_bytes: request.body.len(),
            window_bytes,
        };
        self.calls.open(stream, needs, token)?;
        self.next_stream += 2;
        let head = RequestHead {
            service: request.service,
            priority: request.priority,
            window_bytes: window_bytes as u32,
            body_bytes: request.body.len() as u32,
            ring: request.ring,
            born_us: request.born_us,
            deadline_us: request.deadline_us,
        };
        self.schedule.push(stream, request.priority, Message::request(head, request.body));
        Ok(stream)
    }

    /// Ends an own request that nobody waits for any more. No event follows.
    pub fn cancel(&mut self, stream: StreamId) {
        if let Some(ended) = self.calls.give_up(stream) {
            self.take_back(stream, &ended);
        }
    }

    /// Takes what has not left yet of an own request that has ended out of the schedule.
    fn take_back(&mut self, stream: StreamId, ended: &Ended<T>) {
        if !ended.left_whole {
            self.schedule.remove(stream);
        }
    }

    /// Notes that the caller of a streamed answer has consumed an item of `item_bytes` bytes.
    pub fn consumed(&mut self, stream: StreamId, item_bytes: usize) {
        self.calls.consumed(stream, item_bytes);
    }

    /// Takes the answer of a service. Every [`Event::Request`] is answered once.
    pub fn answer(&mut self, stream: StreamId, status: AnswerStatus, body: Body) {
        let Some((priority, fits)) = self.served.on_answer(stream, body.len()) else {
            self.schedule.remove(stream);
            return;
        };
        let (status, body) = if fits { (status, body) } else { (AnswerStatus::Lost, Body::new()) };
        if !matches!(status, AnswerStatus::Done) {
            // The caller may never take the items that wait for its credit.
            self.schedule.drop_items(stream);
        }
        self.push_answer(stream, priority, status, body);
    }

    /// Takes an item of a streamed answer.
    pub fn send_item(&mut self, stream: StreamId, item: Body) -> Result<(), ItemRefused> {
        match self.served.take_item(stream, ITEM_COST_BYTES.saturating_add(item.len())) {
            ItemRoom::Taken => {
                self.schedule.push_to_flow(stream, Message::item(item));
                Ok(())
            }
            ItemRoom::Full => Err(ItemRefused::Full),
            ItemRoom::TooLarge => Err(ItemRefused::TooLarge),
            ItemRoom::NotWanted => Err(ItemRefused::NotWanted),
        }
    }

    /// Whether nobody wants the answer to a request of the peer any more.
    pub fn is_cancelled(&self, stream: StreamId) -> bool {
        self.served.is_cancelled(stream)
    }

    /// How many requests of the peer are under way.
    pub fn served_under_way(&self) -> usize {
        self.served.under_way()
    }

    /// Closes the connection after a last frame that says why. New requests are not taken.
    pub fn say_goodbye(&mut self, reason: GoodbyeReason, text: impl Into<String>) {
        if !self.said_goodbye && self.goodbye.is_none() {
            self.goodbye = Some((reason, text.into()));
        }
    }

    /// Whether the last frame has been written to the output.
    pub const fn said_goodbye(&self) -> bool {
        self.said_goodbye
    }

    /// Takes whole frames off `buffer`.
    pub fn receive(
        &mut self,
        buffer: &mut BytesMut,
        now_us: i64,
        events: &mut Vec<Event<T>>,
    ) -> Result<(), ConnectionError> {
        self.heartbeat.heard(now_us);
        while let Some(frame) = next_frame(buffer)? {
            self.frames.received += 1;
            self.on_frame(frame, now_us, events)?;
        }
        Ok(())
    }

    fn on_frame(&mut self, frame: Frame, now_us: i64, events: &mut Vec<Event<T>>) -> Result<(), ConnectionError> {
        match frame {
            // The peer was told that these are not executed.
            Frame::Request { .. } | Frame::RequestChunk { .. } if self.said_goodbye => {}
            Frame::Request { stream, head, chunk } => {
                self.check_side(stream, false)?;
                let arrival = self.served.on_request(stream, head, chunk, self.heartbeat.clocks(), now_us)?;
                self.on_arrival(stream, arrival, events);
            }
            Frame::RequestChunk { stream, chunk } => {
                self.check_side(stream, false)?;
                let arrival = self.served.on_chunk(stream, &chunk, self.heartbeat.clocks(), now_us)?;
                self.on_arrival(stream, arrival, events);
            }
            Frame::Answer { stream, head, chunk } => {
                self.check_side(stream, true)?;
                self.heartbeat.answered(now_us);
                let answered = self.calls.on_answer(stream, head, chunk)?;
                self.on_answered(stream, answered, events);
            }
            Frame::AnswerChunk { stream, chunk } => {
                self.check_side(stream, true)?;
                self.heartbeat.answered(now_us);
                let answered = self.calls.on_answer_chunk(stream, &chunk)?;
                self.on_answered(stream, answered, events);
            }
            Frame::Item { stream, length, chunk } => {
                self.check_side(stream, true)?;
                self.heartbeat.answered(now_us);
                self.calls.on_item(stream, length, chunk, events)?;
            }
            Frame::ItemChunk { stream, chunk } => {
                self.check_side(stream, true)?;
                self.heartbeat.answered(now_us);
                self.calls.on_item_chunk(stream, &chunk, events)?;
            }
            Frame::Cancel { stream } => {
                self.check_side(stream, false)?;
                self.schedule.remove(stream);
                if self.served.on_cancel(stream) {
                    events.push(Event::Room { stream });
                }
            }
            Frame::Credit { stream, bytes } => {
                self.check_side(stream, false)?;
                self.schedule.add_credit(stream, usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            Frame::Ping { id, .. } => self.heartbeat.on_ping(id, now_us),
            Frame::Pong { id, clock_us } => self.heartbeat.on_pong(id, clock_us, now_us)?,
            Frame::Goodbye { reason, taken, text } => {
                self.peer_took = Some(StreamId(taken));
                events.push(Event::Goodbye { reason, text });
            }
        }
        Ok(())
    }

    /// Checks that a frame belongs to a request of the right side.
    fn check_side(&self, stream: StreamId, of_ours: bool) -> Result<(), ConnectionError> {
        let is_ours = stream.is_of_initiator() == (self.side == Side::Initiator);
        if is_ours == of_ours { Ok(()) } else { Err(ConnectionError::WrongSide) }
    }

    fn on_arrival(&mut self, stream: StreamId, arrival: Arrival, events: &mut Vec<Event<T>>) {
        match arrival {
            Arrival::Pending => {}
            Arrival::Execute(request) => {
                if request.window_bytes > 0 {
                    self.schedule.open(stream, request.priority, request.window_bytes);
                }
                events.push(Event::Request(request));
            }
            Arrival::Refuse(priority, status) => self.push_answer(stream, priority, status, Body::new()),
        }
    }

    fn push_answer(&mut self, stream: StreamId, priority: Priority, status: AnswerStatus, body: Body) {
        let head = AnswerHead { status, body_bytes: body.len() as u32 };
        self.schedule.push(stream, priority, Message::answer(head, body));
    }

    fn on_answered(&mut self, stream: StreamId, answered: Option<(Ended<T>, Response)>, events: &mut Vec<Event<T>>) {
        let Some((ended, response)) = answered else { return };
        // Whatever of the request has not left yet is of no use any more.
        self.take_back(stream, &ended);
        events.push(Event::Answered { token: ended.token, response });
    }

    /// Ends what is due. It has to be called whenever [`Mux::next_time_us`] has come.
    pub fn on_time(&mut self, now_us: i64, events: &mut Vec<Event<T>>) -> Result<(), ConnectionError> {
        while let Some(stream) = self.calls.overdue(now_us) {
            self.fail(stream, PeerError::Timeout, events);
        }
        self.heartbeat.look(now_us);
        if self.heartbeat.is_unanswered(now_us, 0) {
            self.end_what_waits(now_us, events);
        } else {
            self.silence = Silence::No { allowance_us: 0 };
        }
        self.heartbeat.check(now_us)
    }

    /// Ends the requests that somebody waits for, because the peer answers nothing. Nobody else
    /// waits for transfers, so they end with the connection only.
    #[cold]
    fn end_what_waits(&mut self, now_us: i64, events: &mut Vec<Event<T>>) {
        let large_bytes = i64::try_from(self.calls.large_bodies_bytes()).unwrap_or(i64::MAX);
        let allowance_us = large_bytes / SLOW_LINK_BYTES_PER_US;
        let is_late = self.heartbeat.is_unanswered(now_us, allowance_us.saturating_add(OWN_STOP_US_MIN));
        if is_late && self.silence != Silence::Yes {
            // This node was stopped. What the peer has answered meanwhile may still arrive.
            self.heartbeat.answered(now_us);
        }
        if !self.heartbeat.is_unanswered(now_us, allowance_us) {
            self.silence = Silence::No { allowance_us };
            return;
        }
        self.silence = Silence::Yes;
        let waiting: Vec<StreamId> = self.calls.of_priority(Priority::Request).collect();
        for stream in waiting {
            self.fail(stream, PeerError::Timeout, events);
        }
    }

    /// Ends an own request with `error`, or with [`PeerError::Unreachable`] if the peer cannot have
    /// seen all of it, or has said that it does not execute it.
    fn fail(&mut self, stream: StreamId, error: PeerError, events: &mut Vec<Event<T>>) {
        if let Some(ended) = self.calls.give_up(stream) {
            self.take_back(stream, &ended);
            let is_taken = ended.left_whole && self.peer_took.is_none_or(|last| stream <= last);
            let error = if is_taken { error } else { PeerError::Unreachable };
            events.push(Event::Answered { token: ended.token, response: Err(error) });
        }
    }

    /// When [`Mux::on_time`], or [`Mux::fill`] if the driver can write, has something to do without
    /// any other cause.
    pub fn next_time_us(&self, can_write: bool) -> i64 {
        let next_us = self.heartbeat.next_time_us(can_write, self.silence.allowance_us());
        self.calls.first_due_us().map_or(next_us, |due_us| due_us.min(next_us))
    }

    /// Whether [`Mux::fill`] would write something.
    pub fn has_output(&self, now_us: i64) -> bool {
        !self.said_goodbye
            && (self.goodbye.is_some()
                || self.heartbeat.has_output(now_us)
                || self.calls.has_notices()
                || !self.schedule.is_empty())
    }

    /// Writes frames until `out` has `bytes_target` bytes or nothing is left to send. It exceeds
    /// the target by less than one frame, so whatever is urgent waits for little.
    pub fn fill(&mut self, now_us: i64, bytes_target: usize, out: &mut OutputBuffer, events: &mut Vec<Event<T>>) {
        if self.said_goodbye {
            return;
        }
        self.frames.written += self.heartbeat.write(now_us, out);
        while let Some(notice) = self.calls.next_notice() {
            let payload = notice.credit_bytes.to_le_bytes();
            let payload = if notice.kind == FrameKind::Credit { &payload[..] } else { &[] };
            out.put(&encode_header(notice.kind, notice.stream, payload.len()));
            out.put(payload);
            self.frames.written += 1;
        }
        if let Some((reason, text)) = self.goodbye.take() {
            self.write_answers(bytes_target, out, events);
            let mut frame = Vec::new();
            let taken = self.served.last_executed().0;
            encode_frame(&Frame::Goodbye { reason, taken, text }, &mut frame);
            out.put(&frame);
            self.said_goodbye = true;
            return;
        }
        while out.len() < bytes_target {
            let Some(next) = self.schedule.next() else { return };
            let stream = next.stream;
            if next.unsent_since_us.is_some_and(|born_us| now_us.saturating_sub(born_us) > self.lifetime_us) {
                self.fail(stream, PeerError::Unreachable, events);
                continue;
            }
            let Some(written) = self.schedule.write_next(next, out) else { return };
            self.frames.written += 1;
            if stream.is_of_initiator() == (self.side == Side::Initiator) {
                self.calls.on_written(written);
            } else if self.served.on_written(written) {
                events.push(Event::Room { stream });
            }
        }
    }

    /// Writes the answers that are ready, before the goodbye: the peer may ask another node after a
    /// refusal. Own requests do not leave any more.
    fn write_answers(&mut self, bytes_target: usize, out: &mut OutputBuffer, events: &mut Vec<Event<T>>) {
        let is_initiator = self.side == Side::Initiator;
        self.schedule.remove_requests(|stream| stream.is_of_initiator() == is_initiator);
        while out.len() < bytes_target {
            let Some(next) = self.schedule.next() else { return };
            let Some(written) = self.schedule.write_next(next, out) else { return };
            self.frames.written += 1;
            if self.served.on_written(written) {
                events.push(Event::Room { stream: next.stream });
            }
        }
    }

    /// Ends all own requests, because the connection has ended.
    pub fn close(&mut self, events: &mut Vec<Event<T>>) {
        while let Some(stream) = self.calls.first() {
            self.fail(stream, PeerError::Closed, events);
        }
    }

    /// By how much ages on this connection may be too high, in microseconds.
    pub fn clock_error_us(&self, now_us: i64) -> i64 {
        self.heartbeat.clocks().error_us(now_us)
    }
}

/// What a connection holds, in entries and bytes.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) calls: [usize; 3],
    pub(super) queued_bytes: [usize; 3],
    pub(super) arriving_bytes: usize,
    pub(super) served: [usize; 3],
    pub(super) served_bytes: [usize; 3],
    pub(super) answers_bytes: usize,
    pub(super) served_entries: usize,
    pub(super) scheduled_bytes: usize,
    /// Messages and flows, and how many places in lines are taken.
    pub(super) scheduled_entries: (usize, usize),
}

#[cfg(test)]
impl<T: Clone> Mux<T> {
    pub(super) fn held(&self) -> Held {
        let (calls, queued_bytes, arriving_bytes) = self.calls.held();
        let (served, served_bytes, answers_bytes, served_entries) = self.served.held();
        let (scheduled_bytes, scheduled_entries) = (self.schedule.queued_bytes(), self.schedule.entries());
        Held {
            calls,
            queued_bytes,
            arriving_bytes,
            served,
            served_bytes,
            answers_bytes,
            served_entries,
            scheduled_bytes,
            scheduled_entries,
        }
    }
}
