//! Text in base 62, which is the form of Riak's entity tags and multipart boundaries.

use md5::{Digest, Md5};
use std::sync::atomic::{AtomicU64, Ordering};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Writes a number in base 62.
pub fn encode(mut number: u128) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(DIGITS[(number % 62) as usize]);
        number /= 62;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().map(|&d| char::from(d)).collect()
}

/// The MD5 hash of `bytes` in base 62. It identifies content; it is not a protection against
/// forgery.
pub fn md5_text(bytes: &[u8]) -> String {
    encode(u128::from_be_bytes(Md5::digest(bytes).into()))
}

/// A boundary for a multipart body. No earlier body of this process had the same one, and a stored
/// value contains it only by an accident with a probability of 1 in 2^128. `salt` is data of the
/// body, for example its vector clock.
pub fn boundary(salt: &[u8]) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hash = Md5::new();
    hash.update(salt);
    hash.update(COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    hash.update(std::process::id().to_le_bytes());
    // Riak's boundaries have 27 characters, too.
    format!("{:0>27}", encode(u128::from_be_bytes(hash.finalize().into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_base_62() {
        assert_eq!(encode(0), "0");
        assert_eq!(encode(61), "z");
        assert_eq!(encode(62), "10");
        assert_eq!(encode(u128::MAX).len(), 22);
    }

    #[test]
    fn boundaries_differ_and_have_riaks_length() {
        let (a, b) = (boundary(b"x"), boundary(b"x"));
        assert_ne!(a, b);
        assert_eq!((a.len(), b.len()), (27, 27));
    }
}
