//! The requests of the peer.

use super::assembly::Assembly;
use super::budget::Budget;
use super::config::MuxConfig;
use super::event::{ArrivedRequest, ConnectionError};
use super::message::Written;
use super::streams::Streams;
use crate::clock::ClockAlignment;
use crate::error::RefusalCode;
use crate::frame::{AnswerStatus, Priority, RequestHead, StreamId};
use bytes::Bytes;

/// How many requests a peer may have under way, refused ones included whose answer has not left. A
/// node that takes its answers stays below it: its own limits are lower.
pub(super) const STREAMS_MAX: usize = 32 << 10;

#[derive(Debug)]
enum Phase {
    /// Chunks of the body are missing.
    Arriving(Box<(RequestHead, Assembly)>),
    /// A service has it.
    Executing,
    /// The service has ended, and what it said has not left whole.
    Answering,
}

/// A request of the peer.
#[derive(Debug)]
struct Served {
    priority: Priority,
    phase: Phase,
    /// The bytes of its body, until it is answered.
    body_bytes: usize,
    /// What it holds of the limit for answers: its window, or the bytes of its answer that wait.
    answer_bytes: usize,
    window_bytes: usize,
    /// The bytes of items that have not left whole.
    items_bytes: usize,
    is_counted: bool,
    is_cancelled: bool,
}

impl Served {
    /// A request that is refused, until the answer has left.
    const fn refused(priority: Priority) -> Self {
        Self {
            priority,
            phase: Phase::Answering,
            body_bytes: 0,
            answer_bytes: 0,
            window_bytes: 0,
            items_bytes: 0,
            is_counted: false,
            is_cancelled: false,
        }
    }
}

/// What becomes of a request that has arrived.
#[derive(Debug)]
pub(super) enum Arrival {
    /// More of it is to come, or it is not known any more.
    Pending,
    /// It is whole and in time.
    Execute(ArrivedRequest),
    /// It is answered at once.
    Refuse(Priority, AnswerStatus),
}

/// All requests of the peer that have not ended.
#[derive(Debug)]
pub(super) struct ServedRequests {
    requests: Streams<Served>,
    /// The largest number of a request that a service has got, or 0.
    last_executed: StreamId,
    counts: [usize; 3],
    counts_max: [usize; 3],
    bodies: [Budget; 3],
    answers: Budget,
    body_bytes_max: usize,
    lifetime_us: i64,
}

impl ServedRequests {
    pub(super) fn new(config: &MuxConfig) -> Self {
        Self {
            requests: Streams::new(),
            last_executed: StreamId(0),
            counts: [0; 3],
            counts_max: config.served_max,
            bodies: config.served_bytes_max.map(Budget::new),
            answers: Budget::new(config.answers_bytes_max),
            body_bytes_max: config.body_bytes_max,
            lifetime_us: config.lifetime_us,
        }
    }

    /// Takes the beginning of a request.
    pub(super) fn on_request(
        &mut self,
        stream: StreamId,
        head: RequestHead,
        chunk: Bytes,
        clocks: &ClockAlignment,
        now_us: i64,
    ) -> Result<Arrival, ConnectionError> {
        if self.requests.contains(stream) {
            return Err(ConnectionError::NumberInUse);
        }
        if self.requests.len() >= STREAMS_MAX {
            return Err(ConnectionError::TooManyRequests);
        }
        if let Some(status) = self.make_room(&head) {
            self.insert(stream, Served::refused(head.priority));
            return Ok(Arrival::Refuse(head.priority, status));
        }
        let body_bytes = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
        let window_bytes = usize::try_from(head.window_bytes).unwrap_or(usize::MAX);
        let is_whole = chunk.len() == body_bytes;
        let mut request = Served {
            priority: head.priority,
            phase: Phase::Executing,
            body_bytes,
            answer_bytes: window_bytes,
            window_bytes,
            items_bytes: 0,
            is_counted: true,
            is_cancelled: false,
        };
        if is_whole {
            self.insert(stream, request);
            return Ok(self.start(stream, &head, chunk, clocks, now_us));
        }
        request.phase = Phase::Arriving(Box::new((head, Assembly::begin(body_bytes, chunk))));
        self.insert(stream, request);
        Ok(Arrival::Pending)
    }

    fn insert(&mut self, stream: StreamId, request: Served) {
        let is_new = self.requests.insert(stream, request);
        assert!(is_new, "the number of a request is used twice");
    }

    /// Makes room for a request, or says why there is none.
    fn make_room(&mut self, head: &RequestHead) -> Option<AnswerStatus> {
        let line = head.priority.index();
        let body_bytes = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
        let window_bytes = usize::try_from(head.window_bytes).unwrap_or(usize::MAX);
        if body_bytes > self.body_bytes_max {
            return Some(AnswerStatus::Refused(RefusalCode::TOO_LARGE));
        }
        if self.counts[line] >= self.counts_max[line] || !self.bodies[line].take(body_bytes) {
            return Some(AnswerStatus::Overload);
        }
        if !self.answers.take(window_bytes) {
            self.bodies[line].give_back(body_bytes);
            return Some(AnswerStatus::Overload);
        }
        self.counts[line] += 1;
        None
    }

    /// Takes the next bytes of a request.
    pub(super) fn on_chunk(
        &mut self,
        stream: StreamId,
        chunk: &[u8],
        clocks: &ClockAlignment,
        now_us: i64,
    ) -> Result<Arrival, ConnectionError> {
        let Some(request) = self.requests.get_mut(stream) else { return Ok(Arrival::Pending) };
        match &mut request.phase {
            Phase::Arriving(arriving) => arriving.1.add(chunk)?,
            Phase::Executing => return Err(ConnectionError::BodyTooLong),
            // It was refused, and the peer does not know that yet.
            Phase::Answering => return Ok(Arrival::Pending),
        }
        let (head, body) = match std::mem::replace(&mut request.phase, Phase::Executing) {
            Phase::Arriving(arriving) if arriving.1.is_whole() => *arriving,
            other => {
                request.phase = other;
                return Ok(Arrival::Pending);
            }
        };
        Ok(self.start(stream, &head, body.into_body(), clocks, now_us))
    }

    /// Decides about a request that has arrived whole. The peer's stamps are read only now, so that
    /// a request that lay somewhere for long is seen as old.
    fn start(
        &mut self,
        stream: StreamId,
        head: &RequestHead,
        body: Bytes,
        clocks: &ClockAlignment,
        now_us: i64,
    ) -> Arrival {
        let lowest_offset_us = clocks.lowest_offset_us(now_us);
        let born_us = head.born_us.saturating_add(lowest_offset_us);
        let deadline_us = head.deadline_us.saturating_add(lowest_offset_us);
        if now_us >= deadline_us || now_us.saturating_sub(born_us) > self.lifetime_us {
            self.remove(stream);
            self.insert(stream, Served::refused(head.priority));
            return Arrival::Refuse(head.priority, AnswerStatus::Refused(RefusalCode::EXPIRED));
        }
        self.last_executed = self.last_executed.max(stream);
        Arrival::Execute(ArrivedRequest {
            stream,
            service: head.service,
            priority: head.priority,
            ring: head.ring,
            born_us,
            deadline_us,
            window_bytes: usize::try_from(head.window_bytes).unwrap_or(usize::MAX),
            body,
        })
    }

    /// Notes that a service has ended with an answer of `bytes` bytes. `None` means that nobody
    /// wants the answer. Otherwise says whether there is room for it, and its priority.
    pub(super) fn on_answer(&mut self, stream: StreamId, bytes: usize) -> Option<(Priority, bool)> {
        let request = self.requests.get_mut(stream).filter(|request| matches!(request.phase, Phase::Executing))?;
        let line = request.priority.index();
        if std::mem::take(&mut request.is_counted) {
            self.counts[line] -= 1;
        }
        self.bodies[line].give_back(std::mem::take(&mut request.body_bytes));
        if request.is_cancelled {
            self.remove(stream);
            return None;
        }
        request.phase = Phase::Answering;
        let fits = bytes <= self.body_bytes_max && self.answers.take(bytes);
        if fits {
            request.answer_bytes += bytes;
        }
        Some((request.priority, fits))
    }

    /// Notes that a frame of an answer has left. Returns whether a streamed answer has room again.
    pub(super) fn on_written(&mut self, written: Written) -> bool {
        let Some(request) = self.requests.get_mut(written.stream) else { return false };
        if written.is_item() {
            let was_full = request.items_bytes > request.window_bytes / 2;
            request.items_bytes = request.items_bytes.saturating_sub(written.body_bytes);
            if written.is_last {
                request.items_bytes = request.items_bytes.saturating_sub(super::ITEM_COST_BYTES);
            }
            return was_full && request.items_bytes <= request.window_bytes / 2;
        }
        request.answer_bytes -= written.body_bytes;
        self.answers.give_back(written.body_bytes);
        if written.is_last {
            self.remove(written.stream);
        }
        false
    }

    /// Makes room for an item of a streamed answer. Its cost includes [`super::ITEM_COST_BYTES`].
    pub(super) fn take_item(&mut self, stream: StreamId, cost_bytes: usize) -> ItemRoom {
        let request = self.requests.get_mut(stream).filter(|request| matches!(request.phase, Phase::Executing));
        let Some(request) = request.filter(|request| !request.is_cancelled) else { return ItemRoom::NotWanted };
        if cost_bytes > super::ITEM_COST_BYTES + super::calls::item_bytes_max(request.window_bytes) {
            return ItemRoom::TooLarge;
        }
        if request.items_bytes + cost_bytes > request.window_bytes {
            return ItemRoom::Full;
        }
        request.items_bytes += cost_bytes;
        ItemRoom::Taken
    }

    /// Notes that the caller does not want an answer any more. Returns whether a service is at work
    /// on it. Its place stays taken until the service ends, because the service still costs.
    pub(super) fn on_cancel(&mut self, stream: StreamId) -> bool {
        match self.requests.get_mut(stream) {
            Some(request) if matches!(request.phase, Phase::Executing) => {
                request.is_cancelled = true;
                true
            }
            Some(_) => {
                self.remove(stream);
                false
            }
            None => false,
        }
    }

    pub(super) fn is_cancelled(&self, stream: StreamId) -> bool {
        self.requests.get(stream).is_none_or(|request| request.is_cancelled)
    }

    /// The largest number of a request that a service has got, or 0.
    pub(super) const fn last_executed(&self) -> StreamId {
        self.last_executed
    }

    /// How many requests a service is at work on, or are still arriving.
    pub(super) fn under_way(&self) -> usize {
        self.counts.iter().sum()
    }

    fn remove(&mut self, stream: StreamId) {
        let Some(request) = self.requests.remove(stream) else { return };
        let line = request.priority.index();
        if request.is_counted {
            self.counts[line] -= 1;
        }
        self.bodies[line].give_back(request.body_bytes);
        self.answers.give_back(request.answer_bytes);
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> ([usize; 3], [usize; 3], usize, usize) {
        (self.counts, self.bodies.map(|budget| budget.used()), self.answers.used(), self.requests.len())
    }
}

/// Whether there is room for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemRoom {
    /// It has been taken.
    Taken,
    /// The caller has to consume items first.
    Full,
    /// The item is larger than half the window.
    TooLarge,
    /// The caller does not want items, or not any more.
    NotWanted,
}
