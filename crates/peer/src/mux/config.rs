//! The limits of a connection.

use super::WINDOW_BYTES_MIN;
use super::served::STREAMS_MAX;

/// The limits of one connection. Arrays are indexed by priority: control, request, bulk. Each
/// priority has limits of its own, so that transfers cannot keep heartbeats out.
#[derive(Clone, Debug)]
pub struct MuxConfig {
    /// How many own requests may be under way.
    pub calls_max: [usize; 3],
    /// How many bytes of own requests may wait to be sent.
    pub queued_bytes_max: [usize; 3],
    /// How many requests of the peer may arrive or be executed.
    pub served_max: [usize; 3],
    /// How many bytes of bodies these requests may hold until they are answered.
    pub served_bytes_max: [usize; 3],
    /// How many bytes of answers to the peer may wait to be sent. The windows of streamed answers
    /// count as well.
    pub answers_bytes_max: usize,
    /// How many bytes of answers of the peer may arrive. The windows of streamed answers count as
    /// well.
    pub arriving_bytes_max: usize,
    /// The maximum length of one body in bytes.
    pub body_bytes_max: usize,
    /// The lifetime L of a request (docs/design/replication.md §6): an older request is neither
    /// sent nor executed. All nodes of a cluster have the same.
    pub lifetime_us: i64,
    /// How often the peer is asked for its clock, which also shows that it lives.
    pub ping_interval_us: i64,
    /// How long the peer may leave a ping unanswered, and every request as well, before the
    /// requests that somebody waits for end. The connection stays, and transfers wait on.
    pub answer_max_us: i64,
    /// After how long a silence the connection is given up.
    pub silence_max_us: i64,
}

/// A limit that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is too small: it has to be at least {at_least}")]
pub struct InvalidConfig {
    /// The field.
    pub name: &'static str,
    /// Its minimum.
    pub at_least: u64,
}

impl MuxConfig {
    /// Checks that a single body fits the limits, and that the times make sense.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        let at_least = |name, value: usize, minimum: usize| {
            if value < minimum { Err(InvalidConfig { name, at_least: minimum as u64 }) } else { Ok(()) }
        };
        at_least("body_bytes_max", self.body_bytes_max, WINDOW_BYTES_MIN)?;
        for priority in [1, 2] {
            at_least("queued_bytes_max", self.queued_bytes_max[priority], self.body_bytes_max)?;
            at_least("served_bytes_max", self.served_bytes_max[priority], self.body_bytes_max)?;
        }
        at_least("answers_bytes_max", self.answers_bytes_max, self.body_bytes_max)?;
        at_least("arriving_bytes_max", self.arriving_bytes_max, self.body_bytes_max)?;
        at_least("4 GiB less body_bytes_max", u32::MAX as usize, self.body_bytes_max)?;
        // A peer that served as many would take this node for a hostile one.
        if self.calls_max.iter().sum::<usize>() >= STREAMS_MAX {
            return Err(InvalidConfig { name: "32,768 less the sum of calls_max", at_least: 1 });
        }
        if self.ping_interval_us <= 0 {
            return Err(InvalidConfig { name: "ping_interval_us", at_least: 1 });
        }
        if self.answer_max_us <= 0 {
            return Err(InvalidConfig { name: "answer_max_us", at_least: 1 });
        }
        if self.silence_max_us <= self.ping_interval_us {
            return Err(InvalidConfig { name: "silence_max_us", at_least: self.ping_interval_us as u64 + 1 });
        }
        if self.lifetime_us <= 0 {
            return Err(InvalidConfig { name: "lifetime_us", at_least: 1 });
        }
        Ok(())
    }
}

impl Default for MuxConfig {
    fn default() -> Self {
        Self {
            calls_max: [256, 8192, 1024],
            queued_bytes_max: [4 << 20, 128 << 20, 128 << 20],
            served_max: [256, 8192, 1024],
            served_bytes_max: [4 << 20, 256 << 20, 128 << 20],
            answers_bytes_max: 256 << 20,
            arriving_bytes_max: 256 << 20,
            body_bytes_max: 64 << 20,
            lifetime_us: 30_000_000,
            // A peer that is stopped leaves a request unanswered for at most both of these times.
            ping_interval_us: 500_000,
            answer_max_us: 1_500_000,
            silence_max_us: 5_000_000,
        }
    }
}
