//! Which frame leaves next.

use super::message::{Message, Written};
use super::output::OutputBuffer;
use crate::frame::{Priority, StreamId};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

/// How many frames of requests may leave in a row while a transfer has something to send.
const REQUESTS_IN_A_ROW_MAX: u32 = 8;

/// What a streamed answer has to send.
#[derive(Debug)]
struct Flow {
    priority: Priority,
    messages: VecDeque<Message>,
    /// The credit for items.
    credit_bytes: usize,
    credit_bytes_max: usize,
    /// Whether it stands in the line of its priority, because it may send now.
    is_in_line: bool,
}

impl Flow {
    fn may_send(&self) -> bool {
        self.messages.front().is_some_and(|message| message.may_leave(self.credit_bytes))
    }
}

/// What a stream in a line sends.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// The only message of a stream, by its place in [`Schedule::messages`].
    Message(usize),
    /// The first message of a [`Flow`].
    Flow,
}

/// The stream whose frame leaves next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) stream: StreamId,
    /// When the request came into being, if that is what leaves and nothing of it has left yet.
    pub(super) unsent_since_us: Option<i64>,
    line: usize,
}

/// All that waits to be sent. Each priority has a line. The stream at its head sends one frame and
/// goes to the end. A request and a single answer are one message. A streamed answer is a flow.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    lines: [VecDeque<(StreamId, Turn)>; 3],
    messages: Slab<Message>,
    flows: BTreeMap<StreamId, Flow>,
    requests_in_a_row: u32,
}

impl Schedule {
    /// Adds a message of a stream: to its flow if it has one, and otherwise as its only one.
    pub(super) fn push(&mut self, stream: StreamId, priority: Priority, message: Message) {
        if !self.flows.is_empty() && self.flows.contains_key(&stream) {
            return self.push_to_flow(stream, message);
        }
        let place = self.messages.insert(message);
        self.lines[priority.index()].push_back((stream, Turn::Message(place)));
    }

    /// Adds a message of a streamed answer, after those that it already has. Without a flow it is
    /// dropped: nobody wants it any more.
    pub(super) fn push_to_flow(&mut self, stream: StreamId, message: Message) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.messages.push_back(message);
            line_up(stream, flow, &mut self.lines);
        }
    }

    /// Forgets the items of a streamed answer that have not left as a whole. Its end is a refusal,
    /// which must not wait behind them.
    pub(super) fn drop_items(&mut self, stream: StreamId) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.messages.clear();
        }
    }

    /// Begins a streamed answer, with its window as credit.
    pub(super) fn open(&mut self, stream: StreamId, priority: Priority, window_bytes: usize) {
        let flow = Flow {
            priority,
            messages: VecDeque::new(),
            credit_bytes: window_bytes,
            credit_bytes_max: window_bytes,
            is_in_line: false,
        };
        self.flows.insert(stream, flow);
    }

    /// Forgets a stream, and what it had to send. This searches the lines, so what has left as a
    /// whole need not come here.
    pub(super) fn remove(&mut self, stream: StreamId) {
        self.flows.remove(&stream);
        for line in &mut self.lines {
            if let Some(at) = line.iter().position(|(other, _)| *other == stream) {
                if let Some((_, Turn::Message(place))) = line.remove(at) {
                    self.messages.remove(place);
                }
                return;
            }
        }
    }

    /// Forgets all requests, which are those streams for which `is_request` holds.
    pub(super) fn remove_requests(&mut self, is_request: impl Fn(StreamId) -> bool) {
        let messages = &mut self.messages;
        for line in &mut self.lines {
            line.retain(|(stream, turn)| {
                let stays = !is_request(*stream);
                if let (false, Turn::Message(place)) = (stays, *turn) {
                    messages.remove(place);
                }
                stays
            });
        }
    }

    /// Gives a streamed answer more credit. It never has more than its window.
    pub(super) fn add_credit(&mut self, stream: StreamId, bytes: usize) {
        if let Some(flow) = self.flows.get_mut(&stream) {
            flow.credit_bytes = flow.credit_bytes.saturating_add(bytes).min(flow.credit_bytes_max);
            line_up(stream, flow, &mut self.lines);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(VecDeque::is_empty)
    }

    /// The stream whose frame leaves next.
    pub(super) fn next(&self) -> Option<Next> {
        let waits = |priority: Priority| !self.lines[priority.index()].is_empty();
        let bulk_is_due = self.requests_in_a_row >= REQUESTS_IN_A_ROW_MAX && waits(Priority::Bulk);
        let priority = match () {
            () if waits(Priority::Control) => Priority::Control,
            () if waits(Priority::Request) && !bulk_is_due => Priority::Request,
            () => Priority::Bulk,
        };
        let line = priority.index();
        let (stream, turn) = *self.lines[line].front()?;
        let unsent_since_us = match turn {
            Turn::Message(place) => self.messages.get(place).and_then(Message::unsent_since_us),
            Turn::Flow => None,
        };
        Some(Next { stream, unsent_since_us, line })
    }

    /// Writes a frame of what [`Schedule::next`] has just returned.
    pub(super) fn write_next(&mut self, next: Next, out: &mut OutputBuffer) -> Option<Written> {
        let (stream, turn) = self.lines[next.line].pop_front()?;
        match Priority::ALL[next.line] {
            Priority::Control => {}
            Priority::Request => self.requests_in_a_row = self.requests_in_a_row.saturating_add(1),
            Priority::Bulk => self.requests_in_a_row = 0,
        }
        match turn {
            Turn::Message(place) => {
                let written = self.messages.get_mut(place)?.write_frame(stream, &mut 0, out);
                if written.is_last {
                    self.messages.remove(place);
                } else {
                    self.lines[next.line].push_back((stream, turn));
                }
                Some(written)
            }
            Turn::Flow => self.write_flow(stream, out),
        }
    }

    fn write_flow(&mut self, stream: StreamId, out: &mut OutputBuffer) -> Option<Written> {
        let flow = self.flows.get_mut(&stream)?;
        flow.is_in_line = false;
        let written = flow.messages.front_mut()?.write_frame(stream, &mut flow.credit_bytes, out);
        if written.is_last {
            flow.messages.pop_front();
        }
        // A streamed answer keeps its credit until the answer that ends it.
        if written.is_last && !written.is_item() {
            self.flows.remove(&stream);
        } else {
            line_up(stream, flow, &mut self.lines);
        }
        Some(written)
    }

    /// The bytes of all bodies that wait.
    #[cfg(test)]
    pub(super) fn queued_bytes(&self) -> usize {
        let of_flows = self.flows.values().flat_map(|flow| &flow.messages);
        self.messages.iter().map(|(_, message)| message).chain(of_flows).map(Message::left_bytes).sum()
    }

    /// How many single messages and flows there are, and how many of them stand in a line.
    #[cfg(test)]
    pub(super) fn entries(&self) -> (usize, usize) {
        (self.messages.len() + self.flows.len(), self.lines.iter().map(VecDeque::len).sum())
    }
}

/// Puts a flow at the end of its line if it may send and does not stand there yet.
fn line_up(stream: StreamId, flow: &mut Flow, lines: &mut [VecDeque<(StreamId, Turn)>; 3]) {
    if !flow.is_in_line && flow.may_send() {
        flow.is_in_line = true;
        lines[flow.priority.index()].push_back((stream, Turn::Flow));
    }
}
