//! The hash of everything that happened in a run.

/// A hash over numbers, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    hash: u64,
    events: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self { hash: 0xCBF2_9CE4_8422_2325, events: 0 }
    }
}

impl Trace {
    /// Adds an event, which three numbers describe.
    pub const fn add(&mut self, event: [u64; 3]) {
        let mut at = 0;
        while at < event.len() {
            self.hash = (self.hash ^ event[at]).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
            self.hash ^= self.hash >> 29;
            at += 1;
        }
        self.events += 1;
    }

    /// The hash of all events so far.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// The number of events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }
}
