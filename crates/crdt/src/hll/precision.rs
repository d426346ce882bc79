//! The precision of a HyperLogLog.

/// How many bits of a hash choose a register: from 4 to 16 (property `hll_precision`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precision(u8);

impl Precision {
    /// Riak's default, 14.
    pub const DEFAULT: Self = Self(14);

    /// Creates a precision; `None` if it is not from 4 to 16.
    pub fn new(bits: u64) -> Option<Self> {
        u8::try_from(bits).ok().filter(|bits| (4..=16).contains(bits)).map(Self)
    }

    /// The number of bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Riak keeps fewer registers than this in a list, if no others have a value.
    pub(crate) const fn riak_buffer_max(self) -> usize {
        self.registers() / 40
    }

    /// The number of registers.
    pub const fn registers(self) -> usize {
        1 << self.0
    }
}
