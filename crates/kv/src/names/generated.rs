//! Names that the engine generates: entity tags and keys, in base 62.

use std::sync::atomic::{AtomicU64, Ordering};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Base-62 digits of a 64-bit number.
const DIGITS_OF_64_BITS: usize = 11;
/// Length of a vtag, in bytes.
const VTAG_BYTES: usize = 2 * DIGITS_OF_64_BITS;
/// Length of a key that the engine generates, in bytes: 160 bits (docs/riak/pb-api.md §6.2).
const KEY_BYTES: usize = 27;
/// An odd factor. It maps consecutive numbers to distinct numbers without a visible order.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Generates entity tags: 64 random bits of the process, then a number that never repeats in the
/// process.
#[derive(Debug)]
pub(crate) struct Vtags {
    process: [u8; DIGITS_OF_64_BITS],
    next: AtomicU64,
}

impl Vtags {
    pub(crate) fn new(random: u64) -> Self {
        let mut process = [0; DIGITS_OF_64_BITS];
        base62(random, &mut process);
        Self { process, next: AtomicU64::new(1) }
    }

    pub(crate) fn next(&self) -> [u8; VTAG_BYTES] {
        let number = self.next.fetch_add(1, Ordering::Relaxed).wrapping_mul(SCATTER);
        let mut out = [0; VTAG_BYTES];
        let (process, event) = out.split_at_mut(DIGITS_OF_64_BITS);
        process.copy_from_slice(&self.process);
        base62(number, event);
        out
    }
}

fn base62(mut number: u64, out: &mut [u8]) {
    for digit in out.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
}

/// A 160-bit number, most significant byte first, as the text of a key.
pub(crate) fn key_text(number: [u8; 20]) -> [u8; KEY_BYTES] {
    let mut rest = number;
    let mut out = [0; KEY_BYTES];
    for digit in out.iter_mut().rev() {
        let remainder = rest.iter_mut().fold(0u32, |carry, byte| {
            let n = carry << 8 | u32::from(*byte);
            *byte = (n / 62) as u8;
            n % 62
        });
        *digit = DIGITS[remainder as usize];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn vtags_never_repeat() {
        let vtags = Vtags::new(u64::MAX);
        let seen: HashSet<_> = (0..10_000).map(|_| vtags.next()).collect();
        assert_eq!(seen.len(), 10_000);
        assert!(seen.iter().flatten().all(u8::is_ascii_alphanumeric));
    }

    #[test]
    fn keys_are_160_bits_in_base_62() {
        assert_eq!(&key_text([0; 20]), b"000000000000000000000000000");
        let mut n = [0; 20];
        n[18..].copy_from_slice(&(62u16 * 62 + 61).to_be_bytes());
        assert_eq!(&key_text(n)[24..], b"10z");
        // 62^27 is larger than 2^160: the largest number keeps its first digit.
        assert_ne!(key_text([0xff; 20])[0], b'0');
    }
}
