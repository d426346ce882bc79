//! Partitions: their number, and the 160-bit indexes by which Riak names them.

use crate::key_hash::KeyHash;
use std::fmt;
use std::str::FromStr;

/// The number of partitions of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RingSize(u32);

/// The error for a number that is not a valid ring size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ring has a power of two of partitions, from {} to {}; {given} is none, {nearest} would be right",
    RingSize::MIN,
    RingSize::MAX
)]
pub struct BadRingSize {
    /// The given number.
    pub given: u32,
    /// The nearest valid size.
    pub nearest: u32,
}

impl RingSize {
    /// The smallest ring, in partitions.
    pub const MIN: u32 = 8;
    /// The largest ring, in partitions.
    pub const MAX: u32 = 1024;
    /// The size when the configuration sets none.
    pub const DEFAULT: Self = Self(64);

    /// Creates a size from a power of two between [`Self::MIN`] and [`Self::MAX`].
    pub fn new(partitions: u32) -> Result<Self, BadRingSize> {
        if partitions.is_power_of_two() && (Self::MIN..=Self::MAX).contains(&partitions) {
            return Ok(Self(partitions));
        }
        let above = partitions.clamp(Self::MIN, Self::MAX).next_power_of_two();
        let nearest = if above > Self::MIN && above - partitions.min(above) > partitions.saturating_sub(above / 2) {
            above / 2
        } else {
            above
        };
        Err(BadRingSize { given: partitions, nearest })
    }

    /// The number of partitions.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The home partition of a hash: the partition after the interval that contains the hash
    /// (docs/riak/semantics.md §1). The owner of the home partition is the first node of the
    /// preference list.
    pub fn home_of(self, hash: &KeyHash) -> u32 {
        self.after(hash.leading_bits(self.bits()), 1)
    }

    /// The partition that is `steps` partitions further around the ring.
    pub const fn after(self, partition: u32, steps: u32) -> u32 {
        (partition % self.0 + steps % self.0) % self.0
    }

    const fn bits(self) -> u32 {
        self.0.trailing_zeros()
    }
}

/// The 160-bit name of a partition: its number times 2^160 / ring size. Riak prints it in decimal
/// and names data directories by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionIndex([u8; 20]);

/// Why a text is not a partition index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPartitionIndex {
    /// The text is not a decimal number below 2^160.
    #[error("not a decimal number below 2^160")]
    NotANumber,
    /// The number is not the start of a partition of this ring.
    #[error("not the start of a partition of a ring of {0}")]
    BetweenPartitions(u32),
}

impl PartitionIndex {
    /// The index of a partition number.
    pub fn of(partition: u32, size: RingSize) -> Self {
        let leading = (partition % size.get()) << (32 - size.bits());
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&leading.to_be_bytes());
        Self(bytes)
    }

    /// The number of the partition that starts at this index.
    pub fn partition(&self, size: RingSize) -> Result<u32, BadPartitionIndex> {
        let partition = KeyHash::from_bytes(self.0).leading_bits(size.bits());
        if Self::of(partition, size) == *self {
            Ok(partition)
        } else {
            Err(BadPartitionIndex::BetweenPartitions(size.get()))
        }
    }

    /// The index, most significant byte first.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl FromStr for PartitionIndex {
    type Err = BadPartitionIndex;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(BadPartitionIndex::NotANumber);
        }
        let mut bytes = [0u8; 20];
        for digit in text.bytes() {
            if !digit.is_ascii_digit() {
                return Err(BadPartitionIndex::NotANumber);
            }
            let mut carry = u32::from(digit - b'0');
            for byte in bytes.iter_mut().rev() {
                let n = u32::from(*byte) * 10 + carry;
                *byte = n as u8;
                carry = n >> 8;
            }
            if carry != 0 {
                return Err(BadPartitionIndex::NotANumber);
            }
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for PartitionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 2^160 has 49 decimal digits.
        let mut digits = [b'0'; 49];
        let mut rest = self.0;
        for digit in digits.iter_mut().rev() {
            let mut remainder = 0u32;
            for byte in &mut rest {
                let n = remainder << 8 | u32::from(*byte);
                *byte = (n / 10) as u8;
                remainder = n % 10;
            }
            *digit = b'0' + remainder as u8;
        }
        let first = digits.iter().position(|&d| d != b'0').unwrap_or(digits.len() - 1);
        f.pad(std::str::from_utf8(&digits[first..]).unwrap_or_default())
    }
}

impl fmt::Debug for PartitionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_ring_size_is_a_power_of_two_in_range() {
        for bits in 3..=10 {
            assert_eq!(RingSize::new(1 << bits).unwrap().get(), 1 << bits);
        }
        for (given, nearest) in [(0, 8), (1, 8), (4, 8), (9, 8), (12, 16), (15, 16), (65, 64), (100, 128), (2048, 1024)]
        {
            assert_eq!(RingSize::new(given), Err(BadRingSize { given, nearest }));
        }
        assert_eq!(
            RingSize::new(100).unwrap_err().to_string(),
            "a ring has a power of two of partitions, from 8 to 1024; 100 is none, 128 would be right"
        );
    }

    /// Partition 39 of 64 on a live node (docs/riak/backends.md §2.9).
    #[test]
    fn indexes_are_riaks() {
        let size = RingSize::DEFAULT;
        let index = PartitionIndex::of(39, size);
        assert_eq!(index.to_string(), "890602560248518965780370444936484965102833893376");
        assert_eq!(PartitionIndex::of(0, size).to_string(), "0");
        assert_eq!(PartitionIndex::of(64, size).to_string(), "0");
        assert_eq!("890602560248518965780370444936484965102833893376".parse(), Ok(index));
    }

    #[test]
    fn texts_that_are_no_index_are_refused() {
        for bad in ["", "-1", "12a", "1461501637330902918203684832716283019655932542976"] {
            assert_eq!(bad.parse::<PartitionIndex>(), Err(BadPartitionIndex::NotANumber), "{bad}");
        }
        let largest: PartitionIndex = "1461501637330902918203684832716283019655932542975".parse().unwrap();
        assert_eq!(largest.as_bytes(), &[0xff; 20]);
        assert_eq!(largest.partition(RingSize::DEFAULT), Err(BadPartitionIndex::BetweenPartitions(64)));
    }

    #[test]
    fn the_last_interval_wraps_to_partition_zero() {
        assert_eq!(RingSize::DEFAULT.home_of(&KeyHash::from_bytes([0xff; 20])), 0);
        assert_eq!(RingSize::DEFAULT.home_of(&KeyHash::from_bytes([0; 20])), 1);
    }

    proptest! {
        #[test]
        fn an_index_names_one_partition(bits in 3u32..=10, partition in any::<u32>()) {
            let size = RingSize::new(1 << bits).unwrap();
            let partition = partition % size.get();
            let index = PartitionIndex::of(partition, size);
            prop_assert_eq!(index.partition(size), Ok(partition));
            prop_assert_eq!(index.to_string().parse(), Ok(index));
        }
    }
}
