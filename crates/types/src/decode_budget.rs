//! What a decoder may allocate for one message.
//!
//! Decoded values take many times the bytes of their message: two bytes of JSON can become a value
//! of 32 bytes. So a decoder counts what it builds while it builds it, and ends when that is more
//! than the message may take.

use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A message up to this many bytes may take any memory that decoding it takes. All decoders
/// together take less than [`SMALL_BYTES_MAX`] for it.
pub const SMALL_MESSAGE_BYTES: usize = 64 << 10;

/// What a small message may take, in bytes.
pub const SMALL_BYTES_MAX: usize = 16 << 20;

/// How many times its own bytes a larger message may take. The node takes up to 17 times the
/// message with the message itself, its buffers, lists that are copied while they grow, and what a
/// first attempt to decode it leaves with the allocator (`server/tests/decoded_size.rs`).
pub const GROWTH_MAX: usize = 10;

/// A decoded message would take more memory than allowed, or nobody waits for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it would take more than {bytes_max} bytes of memory")]
pub struct TooLarge {
    /// The number of bytes that were allowed.
    pub bytes_max: usize,
}

/// What a decoder may allocate for one message, and what it has allocated.
#[derive(Clone, Debug)]
pub struct DecodeBudget {
    bytes_max: usize,
    bytes_used: usize,
    bytes_peak: usize,
    is_over: Option<Arc<AtomicBool>>,
}

impl DecodeBudget {
    /// A budget of this many bytes.
    pub const fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes_used: 0, bytes_peak: 0, is_over: None }
    }

    /// A budget without a bound, for what this node has made itself.
    pub const fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// What a message of this length may take beside itself, in bytes.
    pub const fn bytes_for(message_bytes: usize) -> usize {
        if message_bytes <= SMALL_MESSAGE_BYTES { SMALL_BYTES_MAX } else { message_bytes.saturating_mul(GROWTH_MAX) }
    }

    /// The budget of a message of this length.
    pub const fn of_message(message_bytes: usize) -> Self {
        Self::new(Self::bytes_for(message_bytes))
    }

    /// The same budget, which is exhausted as soon as `is_over` is true.
    #[must_use]
    pub fn until(self, is_over: Arc<AtomicBool>) -> Self {
        Self { is_over: Some(is_over), ..self }
    }

    /// The number of bytes that are allowed.
    pub const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The number of bytes in use.
    pub const fn bytes_used(&self) -> usize {
        self.bytes_used
    }

    /// The highest number of bytes that were in use at once.
    pub const fn bytes_peak(&self) -> usize {
        self.bytes_peak
    }

    /// Counts bytes before they are allocated.
    ///
    /// # Errors
    /// [`TooLarge`]: they are too many, and are not counted.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<(), TooLarge> {
        let used = self.bytes_used.saturating_add(bytes);
        if used > self.bytes_max || self.is_over.as_ref().is_some_and(|is_over| is_over.load(Ordering::Relaxed)) {
            return Err(TooLarge { bytes_max: self.bytes_max });
        }
        self.bytes_used = used;
        self.bytes_peak = self.bytes_peak.max(used);
        Ok(())
    }

    /// Counts bytes as free.
    #[inline]
    pub const fn give(&mut self, bytes: usize) {
        self.bytes_used = self.bytes_used.saturating_sub(bytes);
    }

    /// Frees all bytes that were taken since [`Self::bytes_used`] was this number.
    pub fn give_back_to(&mut self, bytes_used: usize) {
        self.bytes_used = self.bytes_used.min(bytes_used);
    }

    /// Appends an item to a list, and counts the memory of the list.
    ///
    /// # Errors
    /// [`TooLarge`]: the list may not grow; it is unchanged.
    #[inline]
    pub fn push<T>(&mut self, list: &mut Vec<T>, item: T) -> Result<(), TooLarge> {
        if list.len() == list.capacity() {
            self.reserve(list, 1)?;
        }
        list.push(item);
        Ok(())
    }

    /// Makes room for at least `more` items behind the last one of a list, and counts it. While the
    /// items move, the old memory counts as well.
    ///
    /// # Errors
    /// [`TooLarge`]: the list may not grow; it is unchanged.
    pub fn reserve<T>(&mut self, list: &mut Vec<T>, more: usize) -> Result<(), TooLarge> {
        let (length, capacity) = (list.len(), list.capacity());
        if capacity - length >= more {
            return Ok(());
        }
        let bytes =
            |capacity: usize| if capacity == 0 { 0 } else { allocated(capacity.saturating_mul(size_of::<T>())) };
        // A list that doubled its room would take three times as much while it moves.
        let wanted = (length + length / 2).max(length.saturating_add(more)).max(4);
        self.take(bytes(wanted))?;
        list.reserve_exact(wanted - length);
        self.give(bytes(capacity));
        Ok(())
    }
}

/// The memory that an allocation of this many bytes takes, with what the allocator adds.
#[inline]
pub const fn allocated(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=16 => 16,
        // Allocators have four sizes between two powers of two.
        _ => bytes.saturating_add(bytes / 8).saturating_add(16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_counts_what_it_holds_and_what_it_moves_from() {
        let mut budget = DecodeBudget::new(100_000);
        let mut list: Vec<u64> = Vec::new();
        while budget.push(&mut list, 7).is_ok() {
            assert_eq!(budget.bytes_used(), allocated(list.capacity() * 8));
        }
        assert!(list.len() > 4_000, "{}", list.len());
        assert!(budget.bytes_peak() <= 100_000);
        budget.give_back_to(0);
        assert_eq!(budget.bytes_used(), 0);
    }

    #[test]
    fn a_budget_ends_with_those_who_wait() {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut budget = DecodeBudget::of_message(1).until(is_over.clone());
        assert_eq!(budget.take(1), Ok(()));
        is_over.store(true, Ordering::Relaxed);
        assert!(budget.take(1).is_err());
    }

    #[test]
    fn small_messages_have_room_and_larger_ones_their_share() {
        assert_eq!(DecodeBudget::bytes_for(SMALL_MESSAGE_BYTES), SMALL_BYTES_MAX);
        let bytes = SMALL_MESSAGE_BYTES + 1;
        assert_eq!(DecodeBudget::bytes_for(bytes), 10 * bytes);
        assert_eq!(DecodeBudget::bytes_for(usize::MAX), usize::MAX);
    }
}
