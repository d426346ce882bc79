//! The configuration of the work that brings copies back to where they belong.

/// Limits of that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferConfig {
    /// Maximum of the bytes that this node pushes to others in a second; 0: no limit.
    pub bytes_per_second: u64,
    /// Maximum of the classes and partitions that are worked on at the same time; 0: no work
    /// begins.
    pub concurrency: usize,
    /// When this node holds more bytes than this for other nodes, it refuses to take more
    /// (`Error::Overload`).
    pub foreign_bytes_max: u64,
    /// Whether this node pushes copies to others (handoff, outbound).
    pub gives: bool,
    /// Whether this node takes copies that others push (handoff, inbound).
    pub takes: bool,
}

impl Default for TransferConfig {
    fn default() -> Self {
        Self { bytes_per_second: 200 << 20, concurrency: 4, foreign_bytes_max: 64 << 30, gives: true, takes: true }
    }
}
