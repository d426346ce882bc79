//! Pings: whether the peer lives, and what its clock shows.

use super::config::MuxConfig;
use super::event::ConnectionError;
use super::output::OutputBuffer;
use crate::clock::{ClockAlignment, ClockSample};
use crate::frame::{FrameKind, StreamId, encode_header};

/// A ping that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: u64,
    at_us: i64,
}

/// The pings of both sides of a connection.
#[derive(Debug)]
pub(super) struct Heartbeat {
    clocks: ClockAlignment,
    interval_us: i64,
    answer_max_us: i64,
    silence_max_us: i64,
    heard_at_us: i64,
    /// When the peer last showed that it takes what this node sends.
    answered_at_us: i64,
    next_ping_us: i64,
    next_id: u64,
    unanswered: Option<Sent>,
    /// Since when a ping is due that could not be written: the peer takes no bytes.
    held_since_us: Option<i64>,
    /// The ping of the peer that has to be answered, and when it arrived. A later one takes the
    /// place of an earlier one.
    to_answer: Option<(u64, i64)>,
}

impl Heartbeat {
    pub(super) const fn new(config: &MuxConfig, first: ClockSample, now_us: i64) -> Self {
        Self {
            clocks: ClockAlignment::new(first),
            interval_us: config.ping_interval_us,
            answer_max_us: config.answer_max_us,
            silence_max_us: config.silence_max_us,
            heard_at_us: now_us,
            answered_at_us: now_us,
            next_ping_us: now_us,
            next_id: 1,
            unanswered: None,
            held_since_us: None,
            to_answer: None,
        }
    }

    pub(super) const fn clocks(&self) -> &ClockAlignment {
        &self.clocks
    }

    pub(super) const fn heard(&mut self, now_us: i64) {
        self.heard_at_us = now_us;
    }

    /// Notes that the peer has answered something.
    pub(super) const fn answered(&mut self, now_us: i64) {
        self.answered_at_us = now_us;
    }

    pub(super) const fn on_ping(&mut self, id: u64, now_us: i64) {
        self.to_answer = Some((id, now_us));
    }

    pub(super) fn on_pong(&mut self, id: u64, theirs_us: i64, now_us: i64) -> Result<(), ConnectionError> {
        let Some(sent) = self.unanswered.filter(|sent| sent.id == id) else { return Ok(()) };
        self.unanswered = None;
        self.answered(now_us);
        let sample = ClockSample { asked_at_us: sent.at_us, theirs_us, answered_at_us: now_us };
        Ok(self.clocks.add(sample)?)
    }

    /// Fails if nothing has arrived for too long since the peer was asked, or since it should have
    /// been asked: a peer that takes no bytes cannot be asked.
    pub(super) fn check(&self, now_us: i64) -> Result<(), ConnectionError> {
        if now_us >= self.silence_ends_us() { Err(ConnectionError::Silent) } else { Ok(()) }
    }

    fn silence_ends_us(&self) -> i64 {
        let asked_at_us = self.unanswered.map_or(self.next_ping_us, |sent| sent.at_us);
        self.heard_at_us.max(asked_at_us).saturating_add(self.silence_max_us)
    }

    /// Notes the time, before what is due is written: a ping that is due now counts as one that the
    /// peer does not answer from now on, and not from when it should have been written. This node
    /// may have been stopped meanwhile.
    pub(super) fn look(&mut self, now_us: i64) {
        if self.held_since_us.is_none() && self.ping_is_due(now_us) {
            self.held_since_us = Some(now_us);
        }
    }

    /// Whether the peer has answered nothing for too long since it was pinged. An answer may take
    /// `allowance_us` longer, because the ping lies behind large bodies.
    pub(super) fn is_unanswered(&self, now_us: i64, allowance_us: i64) -> bool {
        self.answer_is_due_us().is_some_and(|due_us| now_us >= due_us.saturating_add(allowance_us))
    }

    fn answer_is_due_us(&self) -> Option<i64> {
        let asked_at_us = self.unanswered.map(|sent| sent.at_us).or(self.held_since_us)?;
        Some(self.answered_at_us.max(asked_at_us).saturating_add(self.answer_max_us))
    }

    const fn ping_is_due(&self, now_us: i64) -> bool {
        self.unanswered.is_none() && now_us >= self.next_ping_us
    }

    pub(super) const fn has_output(&self, now_us: i64) -> bool {
        self.to_answer.is_some() || self.ping_is_due(now_us)
    }

    /// When [`Heartbeat::check`], [`Heartbeat::look`], or [`Heartbeat::write`] if that is possible,
    /// has something to do, or [`Heartbeat::is_unanswered`] becomes true with an allowance. Without
    /// one it is not waited for.
    pub(super) fn next_time_us(&self, can_write: bool, allowance_us: Option<i64>) -> i64 {
        if self.unanswered.is_none() && (can_write || self.held_since_us.is_none()) {
            return self.next_ping_us;
        }
        let answer_is_due_us = allowance_us.and_then(|more_us| Some(self.answer_is_due_us()?.saturating_add(more_us)));
        answer_is_due_us.unwrap_or(i64::MAX).min(self.silence_ends_us())
    }

    /// Writes the ping and the pong that are due, with the clock as it is now. Returns how many
    /// frames it wrote.
    pub(super) fn write(&mut self, now_us: i64, out: &mut OutputBuffer) -> u64 {
        let mut frames = 0;
        if let Some((id, arrived_us)) = self.to_answer.take() {
            // The peer takes it for a moment after its question, so an earlier one is wrong.
            write(FrameKind::Pong, id, now_us.max(arrived_us), out);
            frames += 1;
        }
        if self.ping_is_due(now_us) {
            write(FrameKind::Ping, self.next_id, now_us, out);
            self.unanswered = Some(Sent { id: self.next_id, at_us: now_us });
            self.held_since_us = None;
            self.next_id += 1;
            self.next_ping_us = now_us.saturating_add(self.interval_us);
            frames += 1;
        }
        frames
    }
}

fn write(kind: FrameKind, id: u64, now_us: i64, out: &mut OutputBuffer) {
    out.put(&encode_header(kind, StreamId(0), 16));
    out.put(&id.to_le_bytes());
    out.put(&now_us.to_le_bytes());
}
