//! Text in base 62, which is the form of Riak's entity tags and multipart boundaries.

use md5::{Digest, Md5};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;
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
/// body, for example its vector clock. A client cannot compute the next boundary from earlier ones.
/// Otherwise it could store a value that ends its own part and begins another one.
pub fn boundary(salt: &[u8]) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static SECRET: LazyLock<[u64; 2]> = LazyLock::new(|| [0; 2].map(|_| RandomState::new().build_hasher().finish()));
    let mut hash = Md5::new();
    SECRET.iter().for_each(|part| hash.update(part.to_le_bytes()));
    hash.update(salt);
    hash.update(COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    // Riak's boundaries have 27 characters, too.
    format!("{:0>27}", encode(u128::from_be_bytes(hash.finalize().into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_cannot_be_told_from_what_clients_know() {
        let boundary = boundary(b"salt");
        for count in 0..10_000u64 {
            let known = [&b"salt"[..], &count.to_le_bytes(), &std::process::id().to_le_bytes()];
            for parts in 2..=3 {
                assert_ne!(format!("{:0>27}", md5_text(&known[..parts].concat())), boundary, "{count}");
            }
        }
    }

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
