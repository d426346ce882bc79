//! The requests that this side has made.

use super::assembly::Assembly;
use super::budget::Budget;
use super::config::MuxConfig;
use super::event::{ConnectionError, Event, Response};
use super::message::Written;
use super::{ITEM_COST_BYTES, WINDOW_BYTES_MIN};
use crate::error::PeerError;
use crate::frame::{AnswerHead, AnswerStatus, FrameKind, Priority, StreamId};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// What an own request needs room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) priority: Priority,
    pub(super) born_us: i64,
    pub(super) deadline_us: i64,
    pub(super) body_bytes: usize,
    pub(super) window_bytes: usize,
}

/// An own request that has not ended.
#[derive(Debug)]
struct Call<T> {
    token: T,
    priority: Priority,
    born_us: i64,
    deadline_us: i64,
    /// Bytes of the body that wait to be sent.
    queued_bytes: usize,
    has_started: bool,
    left_whole: bool,
    /// The window of a streamed answer, or 0.
    window_bytes: usize,
    /// How much the peer may still send of items.
    allowed_bytes: usize,
    /// What the caller has consumed and the peer does not know yet.
    consumed_bytes: usize,
    item: Option<Assembly>,
    answer: Option<(AnswerStatus, Assembly)>,
}

/// All own requests that have not ended.
#[derive(Debug)]
pub(super) struct Calls<T> {
    calls: BTreeMap<StreamId, Call<T>>,
    deadlines: BTreeSet<(i64, StreamId)>,
    counts: [usize; 3],
    counts_max: [usize; 3],
    queued: [Budget; 3],
    arriving: Budget,
    body_bytes_max: usize,
    lifetime_us: i64,
    /// The requests that the peer has to be told of: cancelled ones, and ones with new credit.
    cancelled: BTreeSet<StreamId>,
    with_credit: BTreeSet<StreamId>,
}

impl<T: Clone> Calls<T> {
    pub(super) fn new(config: &MuxConfig) -> Self {
        Self {
            calls: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            counts: [0; 3],
            counts_max: config.calls_max,
            queued: config.queued_bytes_max.map(Budget::new),
            arriving: Budget::new(config.arriving_bytes_max),
            body_bytes_max: config.body_bytes_max,
            lifetime_us: config.lifetime_us,
            cancelled: BTreeSet::new(),
            with_credit: BTreeSet::new(),
        }
    }

    /// Takes a request if there is room for it.
    pub(super) fn open(&mut self, stream: StreamId, needs: Needs, token: T) -> Result<(), PeerError> {
        let line = needs.priority.index();
        if needs.body_bytes > self.body_bytes_max || self.counts[line] >= self.counts_max[line] {
            return Err(PeerError::Overload);
        }
        if !self.queued[line].take(needs.body_bytes) {
            return Err(PeerError::Overload);
        }
        if !self.arriving.take(needs.window_bytes) {
            self.queued[line].give_back(needs.body_bytes);
            return Err(PeerError::Overload);
        }
        self.counts[line] += 1;
        self.deadlines.insert((needs.deadline_us, stream));
        let call = Call {
            token,
            priority: needs.priority,
            born_us: needs.born_us,
            deadline_us: needs.deadline_us,
            queued_bytes: needs.body_bytes,
            has_started: false,
            left_whole: false,
            window_bytes: needs.window_bytes,
            allowed_bytes: needs.window_bytes,
            consumed_bytes: 0,
            item: None,
            answer: None,
        };
        self.calls.insert(stream, call);
        Ok(())
    }

    /// Notes that a frame of a request has left.
    pub(super) fn on_written(&mut self, written: Written) {
        let Some(call) = self.calls.get_mut(&written.stream) else { return };
        call.has_started = true;
        call.left_whole = written.is_last;
        call.queued_bytes -= written.body_bytes;
        self.queued[call.priority.index()].give_back(written.body_bytes);
    }

    /// Whether a request is too old to begin to send it.
    pub(super) fn is_stale(&self, stream: StreamId, now_us: i64) -> bool {
        let is_old = |call: &Call<T>| now_us.saturating_sub(call.born_us) > self.lifetime_us;
        self.calls.get(&stream).is_some_and(|call| !call.has_started && is_old(call))
    }

    /// Ends a request, gives back what it held, and tells the peer if it knows of the request. The
    /// caller takes the rest of it out of the schedule.
    pub(super) fn end(&mut self, stream: StreamId) -> Option<Ended<T>> {
        let call = self.calls.remove(&stream)?;
        let line = call.priority.index();
        self.counts[line] -= 1;
        self.queued[line].give_back(call.queued_bytes);
        let arriving_bytes = call.answer.as_ref().map_or(0, |(_, answer)| answer.body_bytes());
        self.arriving.give_back(call.window_bytes + arriving_bytes);
        self.deadlines.remove(&(call.deadline_us, stream));
        self.with_credit.remove(&stream);
        Some(Ended { token: call.token, has_started: call.has_started, left_whole: call.left_whole })
    }

    /// Ends a request that the caller does not want any more.
    pub(super) fn give_up(&mut self, stream: StreamId) -> Option<Ended<T>> {
        let ended = self.end(stream)?;
        if ended.has_started {
            self.cancelled.insert(stream);
        }
        Some(ended)
    }

    /// A request whose deadline has passed.
    pub(super) fn overdue(&self, now_us: i64) -> Option<StreamId> {
        self.deadlines.first().filter(|(deadline_us, _)| *deadline_us <= now_us).map(|(_, stream)| *stream)
    }

    pub(super) fn first_deadline_us(&self) -> Option<i64> {
        self.deadlines.first().map(|(deadline_us, _)| *deadline_us)
    }

    pub(super) fn first(&self) -> Option<StreamId> {
        self.calls.first_key_value().map(|(stream, _)| *stream)
    }

    pub(super) fn on_item(
        &mut self,
        stream: StreamId,
        item_bytes: u32,
        chunk: Bytes,
        events: &mut Vec<Event<T>>,
    ) -> Result<(), ConnectionError> {
        let Some(call) = self.calls.get_mut(&stream) else { return Ok(()) };
        let item_bytes = usize::try_from(item_bytes).unwrap_or(usize::MAX);
        if call.item.is_some() || item_bytes > item_bytes_max(call.window_bytes) {
            return Err(ConnectionError::CreditExceeded);
        }
        call.spend(ITEM_COST_BYTES + chunk.len())?;
        call.item = Some(Assembly::begin(item_bytes, chunk));
        call.deliver_item(events);
        Ok(())
    }

    pub(super) fn on_item_chunk(
        &mut self,
        stream: StreamId,
        chunk: &[u8],
        events: &mut Vec<Event<T>>,
    ) -> Result<(), ConnectionError> {
        let Some(call) = self.calls.get_mut(&stream) else { return Ok(()) };
        call.spend(chunk.len())?;
        call.item.as_mut().ok_or(ConnectionError::BodyTooLong)?.add(chunk)?;
        call.deliver_item(events);
        Ok(())
    }

    /// Takes the beginning of an answer. Returns the answer if that is all of it.
    pub(super) fn on_answer(
        &mut self,
        stream: StreamId,
        head: AnswerHead,
        chunk: Bytes,
    ) -> Result<Option<Response>, ConnectionError> {
        let Some(call) = self.calls.get_mut(&stream) else { return Ok(None) };
        if call.answer.is_some() {
            return Err(ConnectionError::BodyTooLong);
        }
        let body_bytes = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
        if body_bytes > self.body_bytes_max || !self.arriving.take(body_bytes) {
            return Ok(Some(Err(PeerError::AnswerLost)));
        }
        call.answer = Some((head.status, Assembly::begin(body_bytes, chunk)));
        Ok(call.whole_answer(&mut self.arriving))
    }

    pub(super) fn on_answer_chunk(
        &mut self,
        stream: StreamId,
        chunk: &[u8],
    ) -> Result<Option<Response>, ConnectionError> {
        let Some(call) = self.calls.get_mut(&stream) else { return Ok(None) };
        call.answer.as_mut().ok_or(ConnectionError::BodyTooLong)?.1.add(chunk)?;
        Ok(call.whole_answer(&mut self.arriving))
    }

    /// Notes that the caller has consumed an item. The peer is told when half the window is free.
    pub(super) fn consumed(&mut self, stream: StreamId, item_bytes: usize) {
        let Some(call) = self.calls.get_mut(&stream) else { return };
        call.consumed_bytes += ITEM_COST_BYTES + item_bytes;
        if call.consumed_bytes >= call.window_bytes / 2 {
            self.with_credit.insert(stream);
        }
    }

    pub(super) fn has_notices(&self) -> bool {
        !self.cancelled.is_empty() || !self.with_credit.is_empty()
    }

    /// What the peer has to be told next.
    pub(super) fn next_notice(&mut self) -> Option<Notice> {
        if let Some(stream) = self.cancelled.pop_first() {
            return Some(Notice { kind: FrameKind::Cancel, stream, credit_bytes: 0 });
        }
        let stream = self.with_credit.pop_first()?;
        let call = self.calls.get_mut(&stream)?;
        let credit_bytes = std::mem::take(&mut call.consumed_bytes);
        call.allowed_bytes += credit_bytes;
        Some(Notice { kind: FrameKind::Credit, stream, credit_bytes: credit_bytes as u32 })
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> ([usize; 3], [usize; 3], usize) {
        (self.counts, self.queued.map(|budget| budget.used()), self.arriving.used())
    }
}

impl<T: Clone> Call<T> {
    /// Takes what the peer has sent of items off what it may send.
    fn spend(&mut self, bytes: usize) -> Result<(), ConnectionError> {
        self.allowed_bytes = self.allowed_bytes.checked_sub(bytes).ok_or(ConnectionError::CreditExceeded)?;
        Ok(())
    }

    fn deliver_item(&mut self, events: &mut Vec<Event<T>>) {
        if let Some(item) = self.item.take_if(|item| item.is_whole()) {
            events.push(Event::Item { token: self.token.clone(), item: item.into_body() });
        }
    }

    fn whole_answer(&mut self, arriving: &mut Budget) -> Option<Response> {
        let (status, answer) = self.answer.take_if(|(_, answer)| answer.is_whole())?;
        arriving.give_back(answer.body_bytes());
        let body = answer.into_body();
        Some(match status {
            AnswerStatus::Done => Ok(body),
            AnswerStatus::Overload => Err(PeerError::Overload),
            AnswerStatus::Refused(code) => Err(PeerError::Refused { code, detail: body }),
            AnswerStatus::Lost => Err(PeerError::AnswerLost),
        })
    }
}

/// The end of an own request.
#[derive(Debug)]
pub(super) struct Ended<T> {
    pub(super) token: T,
    pub(super) has_started: bool,
    pub(super) left_whole: bool,
}

/// Something that the peer has to be told about an own request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) kind: FrameKind,
    pub(super) stream: StreamId,
    pub(super) credit_bytes: u32,
}

/// The maximum length of an item in bytes. Half the window is always free or on its way to the
/// peer, so an item of that length never waits for itself.
pub(super) const fn item_bytes_max(window_bytes: usize) -> usize {
    (window_bytes / 2).saturating_sub(ITEM_COST_BYTES)
}

/// The window that is used when a caller asks for `window_bytes`.
pub(super) fn window_bytes(asked_bytes: usize) -> usize {
    asked_bytes.clamp(WINDOW_BYTES_MIN, u32::MAX as usize)
}
