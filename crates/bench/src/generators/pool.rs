//! Pools of bytes, of which values are slices (docs/riak/basho-bench.md §3). All workers share
//! them.

use super::random::Random;
use bytes::Bytes;

/// The length of the incompressible part and of the compressible part of each block in the
/// semi-compressible pool.
const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 8192;
const STRING_BYTES: usize = 128;
const STRINGS: usize = 16;

/// The size of the semi-compressible pool, 64 MiB.
const SEMI_COMPRESSIBLE_BYTES: usize = 2 * BLOCK_BYTES * BLOCKS;

/// A pool of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Bytes);

impl Pool {
    /// A pool with these bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    /// A pool of random bytes, which cannot be compressed.
    pub(super) fn random(bytes: usize, random: &mut Random) -> Self {
        let mut pool = vec![0; bytes];
        random.fill(&mut pool);
        Self::new(pool)
    }

    /// A pool that alternates between random bytes and text, 4 KiB each. The text consists of a few
    /// strings, so that it can be compressed to about a third.
    pub(super) fn semi_compressible(random: &mut Random) -> Self {
        let mut strings = [[0; STRING_BYTES]; STRINGS];
        strings.iter_mut().for_each(|string| random.fill_printable(string));
        let mut pool = vec![0; SEMI_COMPRESSIBLE_BYTES];
        for block in pool.chunks_exact_mut(2 * BLOCK_BYTES) {
            let (noise, text) = block.split_at_mut(BLOCK_BYTES);
            random.fill(noise);
            for (before, part) in text.chunks_exact_mut(STRING_BYTES).enumerate() {
                // The first part is always the first string, and the second part is one of the
                // first two, so compressors see these strings early.
                let choice = random.uniform((before + 1).min(STRINGS) as u64) as usize - 1;
                if let Some(string) = strings.get(choice) {
                    part.copy_from_slice(string);
                }
            }
        }
        Self::new(pool)
    }

    /// A slice of `bytes` bytes from a random place, or the whole pool if it has no more than that.
    pub(super) fn slice(&self, bytes: usize, random: &mut Random) -> &[u8] {
        let Some(places) = self.0.len().checked_sub(bytes) else { return &self.0 };
        let begin = random.uniform(places as u64 + 1) as usize - 1;
        self.0.get(begin..begin + bytes).unwrap_or_default()
    }

    /// The number of bytes in the pool.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::collections::BTreeMap;
    use std::io::Write;

    #[test]
    fn the_semi_compressible_pool_is_noise_and_text_of_sixteen_strings_by_turns() {
        let pool = Pool::semi_compressible(&mut Random::new([42, 23, 12], 0));
        assert_eq!(pool.len(), 64 << 20);
        let texts: Vec<_> = pool.0.chunks(2 * BLOCK_BYTES).map(|block| &block[BLOCK_BYTES..]).collect();
        let at = |place: usize| -> BTreeMap<&[u8], u32> {
            let mut counts = BTreeMap::new();
            let range = place * STRING_BYTES..(place + 1) * STRING_BYTES;
            texts.iter().for_each(|text| *counts.entry(&text[range.clone()]).or_default() += 1);
            counts
        };
        for (place, choices) in [(0, 1), (1, 2), (9, 10), (15, 16), (16, 16), (31, 16)] {
            let counts = at(place);
            assert_eq!(counts.len(), choices, "at {place}");
            let expected = BLOCKS as u32 / choices as u32;
            assert!(counts.values().all(|count| count.abs_diff(expected) < expected / 4), "at {place}: {counts:?}");
            assert!(counts.keys().all(|string| string.iter().all(|byte| (32..=126).contains(byte))));
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(texts[0]).unwrap();
        let left = encoder.finish().unwrap().len();
        assert!((1000..1600).contains(&left), "{left} of 4096 bytes: about a third");
        let mut noise = [0_u32; 256];
        pool.0[..BLOCK_BYTES].iter().for_each(|byte| noise[usize::from(*byte)] += 1);
        assert!(noise.iter().all(|count| *count < 40), "{noise:?}");
    }

    #[test]
    fn slices_are_as_long_as_asked_for_and_come_from_everywhere() {
        let mut random = Random::new([42, 23, 12], 0);
        let pool = Pool::new((0..100).collect());
        let mut firsts = [false; 91];
        for _ in 0..10_000 {
            let slice = pool.slice(10, &mut random);
            assert_eq!(slice.len(), 10);
            firsts[usize::from(slice[0])] = true;
        }
        assert_eq!(firsts, [true; 91]);
        assert_eq!(pool.slice(100, &mut random).len(), 100);
        assert_eq!(pool.slice(101, &mut random).len(), 100);
        assert_eq!(pool.slice(0, &mut random).len(), 0);
    }
}
