//! Writes bits in the order of RFC 1951: the first bit is the lowest of the first byte.

/// A writer of bits. Fewer than eight bits wait in it between two calls.
pub struct BitWriter {
    bytes: Vec<u8>,
    waiting: usize,
    waiting_bits: usize,
}

impl BitWriter {
    /// Returns a writer that appends to the bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, waiting: 0, waiting_bits: 0 }
    }

    /// Writes the lowest bits of the value, of which the others must be 0. At most 16 bits are
    /// written, so that they fit beside those that wait.
    pub fn push(&mut self, value: usize, bits: usize) {
        debug_assert!(bits <= 16 && value >> bits == 0);
        self.waiting |= value << self.waiting_bits;
        self.waiting_bits += bits;
        while self.waiting_bits >= 8 {
            self.push_waiting_byte();
            self.waiting_bits -= 8;
        }
    }

    /// Writes zeros up to the end of a byte, then the bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.align();
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns all bytes. Zeros fill the last one.
    pub fn finish(mut self) -> Vec<u8> {
        self.align();
        self.bytes
    }

    fn align(&mut self) {
        if self.waiting_bits > 0 {
            self.push_waiting_byte();
            self.waiting_bits = 0;
        }
    }

    fn push_waiting_byte(&mut self) {
        self.bytes.push(self.waiting.to_le_bytes()[0]);
        self.waiting >>= 8;
    }
}
