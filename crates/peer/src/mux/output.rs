//! Bytes that are about to be written.

use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::IoSlice;

/// A piece up to this length is copied next to the header before it: one more part of a vectored
/// write costs more than the copy.
const COPIED_BYTES_MAX: usize = 2 << 10;

/// Frames in the order in which they are written. Small pieces are collected in one buffer. Large
/// pieces stay where they are.
#[derive(Debug, Default)]
pub struct OutputBuffer {
    segments: VecDeque<Bytes>,
    /// What follows the segments.
    small: BytesMut,
    bytes: usize,
}

impl OutputBuffer {
    /// The number of bytes that have not been written yet.
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Whether everything has been written.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends bytes by copying them.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.small.extend_from_slice(bytes);
        self.bytes += bytes.len();
    }

    /// Appends bytes. Only few are copied.
    pub(super) fn put_bytes(&mut self, bytes: Bytes) {
        if bytes.len() <= COPIED_BYTES_MAX {
            return self.put(&bytes);
        }
        self.end_small();
        self.bytes += bytes.len();
        self.segments.push_back(bytes);
    }

    fn end_small(&mut self) {
        if !self.small.is_empty() {
            self.segments.push_back(self.small.split().freeze());
        }
    }

    /// All bytes to write, if they lie in one piece.
    pub fn only_piece(&self) -> Option<&[u8]> {
        self.segments.is_empty().then_some(&self.small)
    }

    /// Fills `slices` with the first bytes to write, and returns how many slices were filled.
    pub fn fill_slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let pieces = self.segments.iter().map(|segment| &segment[..]).chain([&self.small[..]]);
        for (slice, piece) in slices.iter_mut().zip(pieces).filter(|(_, piece)| !piece.is_empty()) {
            *slice = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    /// Forgets the first `written` bytes.
    pub fn advance(&mut self, written: usize) {
        self.bytes -= written;
        let mut left = written;
        while left > 0 {
            let Some(first) = self.segments.front_mut() else { return self.small.advance(left) };
            let taken = first.len().min(left);
            first.advance(taken);
            left -= taken;
            if first.is_empty() {
                self.segments.pop_front();
            }
        }
    }
}
