//! Erlang's portable term hash, `erlang:phash2` (docs/riak/semantics.md §18). Riak's anti-entropy
//! trees, tombstone hashes and benchmark keys use it.
//!
//! Invariant: integers of any size, binaries, lists and tuples have the same hash as in Erlang/OTP;
//! the test vectors below check this. The recursion is as deep as the term nests, which the decoder
//! bounds.

use crate::clock::VectorClock;
use crate::etf::Term;

/// The hash in Erlang's default range, 2^27: `phash2(Term)`.
pub fn phash2(term: &Term) -> u32 {
    phash2_u32(term) & ((1 << 27) - 1)
}

/// The hash in the range 2^32: `phash2(Term, 4294967296)`.
fn phash2_u32(term: &Term) -> u32 {
    let mut hasher = Hasher(0);
    hasher.term(term);
    hasher.0
}

/// The hash of a clock in the range 2^32, as the sorted list of `{Actor, {Counter, Seconds}}`. It
/// distinguishes tombstones (docs/riak/semantics.md §2.2); in the default range it is the hash in
/// Riak's key trees.
pub fn clock_phash2_u32(clock: &VectorClock) -> u32 {
    let mut hasher = Hasher(0);
    for entry in clock.entries() {
        hasher.tuple(2);
        hasher.binary(entry.actor.as_bytes());
        hasher.tuple(2);
        hasher.unsigned(entry.counter);
        hasher.unsigned(entry.stamp_secs);
    }
    hasher.nil();
    hasher.0
}

const fn k(n: u32) -> u32 {
    0x9E37_79B9u32.wrapping_mul(n)
}

/// The running hash.
struct Hasher(u32);

impl Hasher {
    fn term(&mut self, term: &Term) {
        match term {
            Term::Int(n) => self.int(*n),
            Term::Big(n) => self.digits(n.sign() == num_bigint::Sign::Minus, n.iter_u64_digits()),
            Term::Float(n) => self.float(*n),
            Term::Atom(name) => self.atom(name),
            Term::Binary(bytes) => self.binary(bytes),
            Term::Tuple(items) => {
                self.tuple(items.len());
                items.iter().for_each(|item| self.term(item));
            }
            Term::String(bytes) => {
                self.byte_run(bytes);
                self.nil();
            }
            Term::List(items) => {
                self.elements(items);
                self.nil();
            }
            Term::ImproperList(items, tail) => {
                self.elements(items);
                self.term(tail);
            }
            Term::Map(pairs) => self.map(pairs),
        }
    }

    fn unsigned(&mut self, n: u64) {
        match i64::try_from(n) {
            Ok(n) => self.int(n),
            Err(_) => self.digits(false, std::iter::once(n)),
        }
    }

    fn int(&mut self, n: i64) {
        const SMALL: i64 = 1 << 27;
        if !(-SMALL..SMALL).contains(&n) {
            return self.digits(n < 0, std::iter::once(n.unsigned_abs()));
        }
        let n = n as i32;
        if n < 0 {
            self.mix_in(n.unsigned_abs(), 0, k(1));
        }
        self.mix_in(n as u32, 0, k(1));
    }

    fn digits(&mut self, negative: bool, digits: impl Iterator<Item = u64>) {
        let constant = if negative { k(10) } else { k(11) };
        digits.for_each(|d| self.mix_in(d as u32, (d >> 32) as u32, constant));
    }

    fn float(&mut self, n: f64) {
        let bits = if n == 0.0 { 0 } else { n.to_bits() };
        self.mix_in((bits >> 32) as u32, bits as u32, k(12));
    }

    fn tuple(&mut self, arity: usize) {
        self.mix_in(arity as u32, 0, k(9));
    }

    fn nil(&mut self) {
        match self.0 {
            0 => self.0 = 3_468_870_702,
            _ => self.mix_in(2, 0, k(2)),
        }
    }

    fn atom(&mut self, name: &str) {
        let hash = pjw(name);
        match self.0 {
            0 => self.0 = hash,
            _ => self.mix_in(hash, 0, k(3)),
        }
    }

    /// Packs runs of integers that fit in a byte; walks all other elements.
    fn elements(&mut self, items: &[Term]) {
        let mut run = Vec::new();
        for item in items {
            match item {
                Term::Int(n @ 0..=255) => run.push(*n as u8),
                other => {
                    self.byte_run(&run);
                    run.clear();
                    self.term(other);
                }
            }
        }
        self.byte_run(&run);
    }

    fn byte_run(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(4) {
            let word = chunk.iter().fold(0u32, |word, &b| word << 8 | u32::from(b));
            self.mix_in(word, 0, k(4));
        }
    }

    fn map(&mut self, pairs: &[(Term, Term)]) {
        self.mix_in(pairs.len() as u32, 0, k(16));
        if pairs.is_empty() {
            return;
        }
        let pair_hash = |(key, value): &(Term, Term)| {
            let mut hasher = Self(0);
            hasher.term(key);
            hasher.term(value);
            hasher.0
        };
        let all = pairs.iter().map(pair_hash).fold(0, |x, h| x ^ h);
        self.mix_in(all, 0, k(19));
    }

    /// Bob Jenkins' hash of a block of bytes.
    fn binary(&mut self, bytes: &[u8]) {
        let init = k(13).wrapping_add(self.0);
        if bytes.is_empty() {
            self.0 = init;
            return;
        }
        let (mut a, mut b, mut c) = (k(1), k(1), init);
        let mut blocks = bytes.chunks_exact(12);
        for block in &mut blocks {
            a = a.wrapping_add(little_endian(block, 0..4));
            b = b.wrapping_add(little_endian(block, 4..8));
            c = c.wrapping_add(little_endian(block, 8..12));
            (a, b, c) = mix(a, b, c);
        }
        let rest = blocks.remainder();
        a = a.wrapping_add(little_endian(rest, 0..4));
        b = b.wrapping_add(little_endian(rest, 4..8));
        // The lowest byte of c is reserved for the length.
        c = c.wrapping_add(bytes.len() as u32).wrapping_add(little_endian(rest, 8..11) << 8);
        self.0 = mix(a, b, c).2;
    }

    fn mix_in(&mut self, x: u32, y: u32, constant: u32) {
        self.0 = mix(constant.wrapping_add(x), constant.wrapping_add(y), self.0).2;
    }
}

/// The word of the bytes in `range`, as far as they exist.
fn little_endian(bytes: &[u8], range: std::ops::Range<usize>) -> u32 {
    let part = bytes.iter().take(range.end).skip(range.start);
    part.rev().fold(0, |word, &b| word << 8 | u32::from(b))
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for (right, left, last) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> right);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << left);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> last);
    }
    (a, b, c)
}

/// The hash of an atom's text. As in the virtual machine's atom table, characters below 256 take
/// one byte.
fn pjw(name: &str) -> u32 {
    let step = |h: u32, byte: u8| {
        let h = (h << 4).wrapping_add(u32::from(byte));
        let high = h & 0xF000_0000;
        if high == 0 { h } else { (h ^ (high >> 24)) ^ high }
    };
    let mut utf8 = [0; 4];
    name.chars().fold(0, |h, c| match u8::try_from(u32::from(c)) {
        Ok(byte) => step(h, byte),
        Err(_) => c.encode_utf8(&mut utf8).bytes().fold(h, step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Actor, Dot};
    use num_bigint::BigInt;

    fn stamped(actor: &[u8], counter: u64, stamp: u64) -> Term {
        Term::pair(Term::binary(actor), Term::pair(Term::from(counter), Term::from(stamp)))
    }

    fn clock(entries: &[(&[u8], u64, u64)]) -> VectorClock {
        VectorClock::from_entries(entries.iter().map(|&(actor, counter, stamp_secs)| Dot {
            actor: Actor::new(actor),
            counter,
            stamp_secs,
        }))
    }

    #[test]
    fn vectors_of_the_default_range() {
        let mixed = Term::Tuple(vec![
            Term::Int(1),
            Term::Int(-5),
            Term::Int(1 << 40),
            Term::from(-(BigInt::from(1) << 70u32)),
            Term::List([1, 2, 3, 4, 5, 300].map(Term::Int).into_iter().chain([Term::binary(b"x")]).collect()),
            Term::binary(b""),
        ]);
        let cases = [
            (Term::nil(), 113_427_502),
            (Term::Int(5), 5_878_562),
            (Term::binary(b"abcdefghijklmnop"), 1_713_436),
            (Term::pair(Term::binary(b"b"), Term::binary(b"k")), 34_474_425),
            (Term::List(vec![stamped(&[1, 2, 3, 4], 1, 63_900_000_000)]), 2_317_733),
            (mixed, 18_186_956),
        ];
        for (term, hash) in cases {
            assert_eq!(phash2(&term), hash, "{term}");
        }
    }

    #[test]
    fn vectors_of_the_full_range() {
        let two = Term::List(vec![stamped(&[b'a'; 12], 7, 63_900_000_000), stamped(&[b'b'; 23], 1 << 33, 1)]);
        let cases = [
            (Term::List(vec![stamped(&[1, 2, 3, 4], 1, 63_900_000_000)]), 941_841_829),
            (two, 1_495_419_589),
            (Term::atom("ok"), 1883),
            (Term::atom("a"), 97),
            (Term::nil(), 3_468_870_702),
            (Term::Tuple(vec![]), 221_703_996),
            (Term::Float(1.5), 2_023_646_235),
            (Term::Map(vec![]), 844_985_373),
            (Term::Map(vec![(Term::atom("a"), Term::Int(1))]), 1_401_795_262),
        ];
        for (term, hash) in cases {
            assert_eq!(phash2_u32(&term), hash, "{term}");
        }
    }

    #[test]
    fn clocks_hash_as_their_sorted_lists() {
        let one = clock(&[(&[9; 8], 3, 63_900_000_007), (&[1, 2, 3, 4, 5, 6, 7, 8], 1, 63_900_000_000)]);
        assert_eq!(clock_phash2_u32(&one), 2_861_770_191);
        assert_eq!(clock_phash2_u32(&one) & ((1 << 27) - 1), 43_197_903);
        assert_eq!(
            clock_phash2_u32(&clock(&[(&[b'b'; 23], 1 << 33, 1), (&[b'a'; 12], 7, 63_900_000_000)])),
            1_495_419_589
        );
        assert_eq!(clock_phash2_u32(&VectorClock::new()), phash2_u32(&Term::nil()));
    }

    #[test]
    fn strings_hash_as_the_lists_they_are() {
        let list = Term::List(b"hello".iter().map(|&b| Term::Int(i64::from(b))).collect());
        assert_eq!(phash2_u32(&Term::string(b"hello")), phash2_u32(&list));
    }
}
