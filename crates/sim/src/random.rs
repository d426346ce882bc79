//! The random numbers of a run. A seed decides all of them.

use std::ops::Range;

/// A source of random numbers: splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The source of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number of a range that is not empty.
    pub const fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// An index of something of this length, which is not 0.
    pub const fn index(&mut self, length: usize) -> usize {
        (self.next() % length as u64) as usize
    }

    /// An element of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// True in `percent` of 100 cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// Another source, whose numbers have nothing to do with the ones of this source.
    pub const fn fork(&mut self) -> Self {
        Self(self.next() ^ 0x5851_F42D_4C95_7F2D)
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.next().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }
}
