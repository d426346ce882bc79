//! The requests that this side has made.

use super::assembly::Assembly;
use super::budget::Budget;
use super::config::MuxConfig;
use super::event::{ConnectionError, Event, Response};
use super::message::Written;
use super::sorted::Sorted;
use super::streams::Streams;
use super::{ITEM_COST_BYTES, WINDOW_BYTES_MIN};
use crate::error::PeerError;
use crate::frame::{AnswerHead, AnswerStatus, FrameKind, Priority, StreamId};
use bytes::Bytes;
use std::collections::BTreeSet;

/// A body from this length on may delay the ping behind it on a slow link.
const LARGE_BODY_BYTES_MIN: usize = 64 << 10;

/// What an own request needs room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) priority: Priority,
    pub(super) send_by_us: i64,
    pub(super) deadline_us: i64,
    pub(super) body_bytes: usize,
    pub(super) window_bytes: usize,
}

/// An own request that has not ended. Each request makes one, so what few requests need is boxed.
#[derive(Debug)]
struct Call<T> {
    token: T,
    priority: Priority,
    has_started: bool,
    left_whole: bool,
    deadline_us: i64,
    /// When the request ends unless something happens before: the moment by which it must have left
    /// as a whole, and then its deadline.
    due_us: i64,
    body_bytes: usize,
    /// Bytes of the body that wait to be sent.
    queued_bytes: usize,
    /// If the answer is streamed.
    items: Option<Box<Items>>,
    /// An answer of which chunks are missing.
    answer: Option<Box<(AnswerStatus, Assembly)>>,
}

/// The items of a streamed answer.
#[derive(Debug)]
struct Items {
    window_bytes: usize,
    /// How much the peer may still send of items.
    allowed_bytes: usize,
    /// What the caller has consumed and the peer does not know yet.
    consumed_bytes: usize,
    item: Option<Assembly>,
}

/// All own requests that have not ended.
#[derive(Debug)]
pub(super) struct Calls<T> {
    calls: Streams<Call<T>>,
    due: Sorted<(i64, StreamId), ()>,
    counts: [usize; 3],
    counts_max: [usize; 3],
    queued: [Budget; 3],
    arriving: Budget,
    body_bytes_max: usize,
    /// The requests that the peer has to be told of: cancelled ones, and ones with new credit.
    cancelled: BTreeSet<StreamId>,
    with_credit: BTreeSet<StreamId>,
}

impl<T> Calls<T> {
    pub(super) fn new(config: &MuxConfig) -> Self {
        Self {
            calls: Streams::new(),
            due: Sorted::new(),
            counts: [0; 3],
            counts_max: config.calls_max,
            queued: config.queued_bytes_max.map(Budget::new),
            arriving: Budget::new(config.arriving_bytes_max),
            body_bytes_max: config.body_bytes_max,
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
        let due_us = needs.deadline_us.min(needs.send_by_us);
        let items = |window_bytes| Items { window_bytes, allowed_bytes: window_bytes, consumed_bytes: 0, item: None };
        let call = Call {
            token,
            priority: needs.priority,
            has_started: false,
            left_whole: false,
            deadline_us: needs.deadline_us,
            due_us,
            body_bytes: needs.body_bytes,
            queued_bytes: needs.body_bytes,
            items: (needs.window_bytes > 0).then(|| Box::new(items(needs.window_bytes))),
            answer: None,
        };
        let is_new = self.calls.insert(stream, call) && self.due.insert((due_us, stream), ());
        assert!(is_new, "the number of a request is used twice");
        Ok(())
    }

    /// Notes that a frame of a request has left.
    pub(super) fn on_written(&mut self, written: Written) {
        let Some(call) = self.calls.get_mut(written.stream) else { return };
        call.has_started = true;
        call.left_whole = written.is_last;
        call.queued_bytes -= written.body_bytes;
        self.queued[call.priority.index()].give_back(written.body_bytes);
        if written.is_last && call.due_us < call.deadline_us {
            let was_due_us = std::mem::replace(&mut call.due_us, call.deadline_us);
            self.due.remove((was_due_us, written.stream));
            let is_new = self.due.insert((call.due_us, written.stream), ());
            assert!(is_new, "a request is due twice");
        }
    }

    /// Ends a request, gives back what it held, and tells the peer if it knows of the request. The
    /// caller takes the rest of it out of the schedule.
    fn end(&mut self, stream: StreamId) -> Option<Call<T>> {
        let call = self.calls.remove(stream)?;
        let line = call.priority.index();
        self.counts[line] -= 1;
        self.queued[line].give_back(call.queued_bytes);
        self.due.remove((call.due_us, stream));
        if let Some(items) = &call.items {
            self.arriving.give_back(items.window_bytes);
            self.with_credit.remove(&stream);
        }
        if let Some(answer) = &call.answer {
            self.arriving.give_back(answer.1.body_bytes());
        }
        Some(call)
    }

    /// Ends a request that the caller does not want any more.
    pub(super) fn give_up(&mut self, stream: StreamId) -> Option<Ended<T>> {
        let call = self.end(stream)?;
        if call.has_started {
            self.cancelled.insert(stream);
        }
        Some(call.ended())
    }

    /// Ends a request with its answer.
    fn answered(&mut self, stream: StreamId, status: AnswerStatus, body: Bytes) -> Option<(Ended<T>, Response)> {
        let response = match status {
            AnswerStatus::Done => Ok(body),
            AnswerStatus::Overload => Err(PeerError::Overload),
            AnswerStatus::Refused(code) => Err(PeerError::Refused { code, detail: body }),
            AnswerStatus::Lost => return self.lost(stream),
        };
        Some((self.end(stream)?.ended(), response))
    }

    /// Ends a request whose answer is lost, or does not fit: more of it may be on its way.
    fn lost(&mut self, stream: StreamId) -> Option<(Ended<T>, Response)> {
        Some((self.give_up(stream)?, Err(PeerError::AnswerLost)))
    }

    /// A request whose deadline has passed, or that should have left by now.
    pub(super) fn overdue(&self, now_us: i64) -> Option<StreamId> {
        self.due.first().filter(|((due_us, _), ())| *due_us <= now_us).map(|((_, stream), ())| stream)
    }

    pub(super) fn first_due_us(&self) -> Option<i64> {
        self.due.first().map(|((due_us, _), ())| due_us)
    }

    pub(super) fn first(&self) -> Option<StreamId> {
        self.calls.first()
    }

    /// The requests of a priority, in their order.
    pub(super) fn of_priority(&self, priority: Priority) -> impl Iterator<Item = StreamId> {
        self.calls.iter().filter(move |(_, call)| call.priority == priority).map(|(stream, _)| stream)
    }

    /// The bytes of large bodies, in front of which a ping may not have arrived yet.
    pub(super) fn large_bodies_bytes(&self) -> usize {
        let is_large = |call: &&Call<T>| call.has_started && call.body_bytes >= LARGE_BODY_BYTES_MIN;
        self.calls.iter().map(|(_, call)| call).filter(is_large).map(|call| call.body_bytes).sum()
    }

    pub(super) fn on_item(
        &mut self,
        stream: StreamId,
        item_bytes: u32,
        chunk: Bytes,
        events: &mut Vec<Event<T>>,
    ) -> Result<(), ConnectionError>
    where
        T: Clone,
    {
        let Some(call) = self.calls.get_mut(stream) else { return Ok(()) };
        let items = call.items.as_mut().ok_or(ConnectionError::CreditExceeded)?;
        let item_bytes = usize::try_from(item_bytes).unwrap_or(usize::MAX);
        if items.item.is_some() || item_bytes > item_bytes_max(items.window_bytes) {
            return Err(ConnectionError::CreditExceeded);
        }
        items.spend(ITEM_COST_BYTES + chunk.len())?;
        items.item = Some(Assembly::begin(item_bytes, chunk));
        items.deliver(&call.token, events);
        Ok(())
    }

    pub(super) fn on_item_chunk(
        &mut self,
        stream: StreamId,
        chunk: &[u8],
        events: &mut Vec<Event<T>>,
    ) -> Result<(), ConnectionError>
    where
        T: Clone,
    {
        let Some(call) = self.calls.get_mut(stream) else { return Ok(()) };
        let items = call.items.as_mut().ok_or(ConnectionError::CreditExceeded)?;
        items.spend(chunk.len())?;
        items.item.as_mut().ok_or(ConnectionError::BodyTooLong)?.add(chunk)?;
        items.deliver(&call.token, events);
        Ok(())
    }

    /// Takes the beginning of an answer. Ends the request if that is all of it.
    pub(super) fn on_answer(
        &mut self,
        stream: StreamId,
        head: AnswerHead,
        chunk: Bytes,
    ) -> Result<Option<(Ended<T>, Response)>, ConnectionError> {
        let Some(call) = self.calls.get_mut(stream) else { return Ok(None) };
        if call.answer.is_some() {
            return Err(ConnectionError::BodyTooLong);
        }
        let body_bytes = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
        if body_bytes > self.body_bytes_max || !self.arriving.has_room_for(body_bytes) {
            return Ok(self.lost(stream));
        }
        if chunk.len() == body_bytes {
            return Ok(self.answered(stream, head.status, chunk));
        }
        // There is room for it.
        let _taken = self.arriving.take(body_bytes);
        call.answer = Some(Box::new((head.status, Assembly::begin(body_bytes, chunk))));
        Ok(None)
    }

    /// Takes the next bytes of an answer. Ends the request if they are the last.
    pub(super) fn on_answer_chunk(
        &mut self,
        stream: StreamId,
        chunk: &[u8],
    ) -> Result<Option<(Ended<T>, Response)>, ConnectionError> {
        let Some(call) = self.calls.get_mut(stream) else { return Ok(None) };
        call.answer.as_mut().ok_or(ConnectionError::BodyTooLong)?.1.add(chunk)?;
        let Some(answer) = call.answer.take_if(|answer| answer.1.is_whole()) else { return Ok(None) };
        let (status, answer) = *answer;
        self.arriving.give_back(answer.body_bytes());
        Ok(self.answered(stream, status, answer.into_body()))
    }

    /// Notes that the caller has consumed an item. The peer is told when half the window is free.
    pub(super) fn consumed(&mut self, stream: StreamId, item_bytes: usize) {
        let items = self.calls.get_mut(stream).and_then(|call| call.items.as_mut());
        let Some(items) = items else { return };
        items.consumed_bytes += ITEM_COST_BYTES + item_bytes;
        if items.consumed_bytes >= items.window_bytes / 2 {
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
        let items = self.calls.get_mut(stream)?.items.as_mut()?;
        let credit_bytes = std::mem::take(&mut items.consumed_bytes);
        items.allowed_bytes += credit_bytes;
        Some(Notice { kind: FrameKind::Credit, stream, credit_bytes: credit_bytes as u32 })
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> ([usize; 3], [usize; 3], usize) {
        (self.counts, self.queued.map(|budget| budget.used()), self.arriving.used())
    }
}

impl<T> Call<T> {
    fn ended(self) -> Ended<T> {
        Ended { token: self.token, left_whole: self.left_whole }
    }
}

impl Items {
    /// Takes what the peer has sent of items off what it may send.
    fn spend(&mut self, bytes: usize) -> Result<(), ConnectionError> {
        self.allowed_bytes = self.allowed_bytes.checked_sub(bytes).ok_or(ConnectionError::CreditExceeded)?;
        Ok(())
    }

    fn deliver<T: Clone>(&mut self, token: &T, events: &mut Vec<Event<T>>) {
        if let Some(item) = self.item.take_if(|item| item.is_whole()) {
            events.push(Event::Item { token: token.clone(), item: item.into_body() });
        }
    }
}

/// The end of an own request.
#[derive(Debug)]
pub(super) struct Ended<T> {
    pub(super) token: T,
    /// Whether nothing of it waits to be sent any more.
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
