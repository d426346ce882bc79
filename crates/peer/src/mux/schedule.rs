//! Which frame leaves next.

use super::message::{Message, Written};
use super::output::OutputBuffer;
use crate::frame::{Priority, StreamId};
use std::collections::{BTreeMap, VecDeque};

/// How many frames of requests may leave in a row while a transfer has something to send.
const REQUESTS_IN_A_ROW_MAX: u32 = 8;

/// What a stream has to send.
#[derive(Debug)]
struct Flow {
    priority: Priority,
    messages: VecDeque<Message>,
    /// The credit for items.
    credit_bytes: usize,
    credit_bytes_max: usize,
    /// The place in the line of its priority, if the stream may send now.
    turn: Option<u64>,
}

/// All that waits to be sent. Each priority has a line. The stream at its head sends one frame and
/// goes to the end.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    flows: BTreeMap<StreamId, Flow>,
    lines: [BTreeMap<u64, StreamId>; 3],
    next_turn: u64,
    requests_in_a_row: u32,
}

impl Schedule {
    /// Adds a message of a stream, after those that it already has. `window_bytes` is the credit
    /// with which a new stream begins.
    pub(super) fn push(&mut self, stream: StreamId, priority: Priority, window_bytes: usize, message: Message) {
        let flow = self.flows.entry(stream).or_insert_with(|| Flow {
            priority,
            messages: VecDeque::with_capacity(1),
            credit_bytes: window_bytes,
            credit_bytes_max: window_bytes,
            turn: None,
        });
        flow.messages.push_back(message);
        self.line_up(stream);
    }

    /// Keeps the credit of a streamed answer although it has nothing to send.
    pub(super) fn open(&mut self, stream: StreamId, priority: Priority, window_bytes: usize) {
        let flow = Flow {
            priority,
            messages: VecDeque::new(),
            credit_bytes: window_bytes,
            credit_bytes_max: window_bytes,
            turn: None,
        };
        self.flows.insert(stream, flow);
    }

    /// Forgets a stream, and says how many bytes it had to send.
    pub(super) fn remove(&mut self, stream: StreamId) -> usize {
        let Some(flow) = self.flows.remove(&stream) else { return 0 };
        if let Some(turn) = flow.turn {
            self.lines[flow.priority.index()].remove(&turn);
        }
        flow.messages.iter().map(Message::left_bytes).sum()
    }

    /// Gives a stream more credit. It never has more than its window.
    pub(super) fn add_credit(&mut self, stream: StreamId, bytes: usize) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.credit_bytes = flow.credit_bytes.saturating_add(bytes).min(flow.credit_bytes_max);
            self.line_up(stream);
        }
    }

    /// Puts a stream at the end of its line if it may send and does not stand there yet.
    fn line_up(&mut self, stream: StreamId) {
        let Some(flow) = self.flows.get_mut(&stream) else { return };
        let may_send = flow.messages.front().is_some_and(|message| message.may_leave(flow.credit_bytes));
        if may_send && flow.turn.is_none() {
            flow.turn = Some(self.next_turn);
            self.lines[flow.priority.index()].insert(self.next_turn, stream);
            self.next_turn += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(BTreeMap::is_empty)
    }

    /// The stream whose frame leaves next.
    pub(super) fn next(&self) -> Option<StreamId> {
        let first = |priority: Priority| self.lines[priority.index()].first_key_value().map(|(_, stream)| *stream);
        let (request, bulk) = (first(Priority::Request), first(Priority::Bulk));
        let bulk_is_due = self.requests_in_a_row >= REQUESTS_IN_A_ROW_MAX;
        first(Priority::Control).or(if bulk_is_due { bulk.or(request) } else { request.or(bulk) })
    }

    /// Writes a frame of [`Schedule::next`].
    pub(super) fn write_next(&mut self, out: &mut OutputBuffer) -> Option<Written> {
        let stream = self.next()?;
        let flow = self.flows.get_mut(&stream)?;
        if let Some(turn) = flow.turn.take() {
            self.lines[flow.priority.index()].remove(&turn);
        }
        match flow.priority {
            Priority::Control => {}
            Priority::Request => self.requests_in_a_row = self.requests_in_a_row.saturating_add(1),
            Priority::Bulk => self.requests_in_a_row = 0,
        }
        let message = flow.messages.front_mut()?;
        let written = message.write_frame(stream, &mut flow.credit_bytes, out);
        if written.is_last {
            flow.messages.pop_front();
        }
        // A streamed answer keeps its credit until the answer that ends it.
        if written.is_last && !written.is_item() {
            self.flows.remove(&stream);
        } else {
            self.line_up(stream);
        }
        Some(written)
    }

    /// The bytes of all bodies that wait.
    #[cfg(test)]
    pub(super) fn queued_bytes(&self) -> usize {
        self.flows.values().flat_map(|flow| &flow.messages).map(Message::left_bytes).sum()
    }
}
