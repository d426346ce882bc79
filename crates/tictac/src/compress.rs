//! Compression to the bytes that Riak sends.
//!
//! Every receiver can read what any encoder has made. But whoever compares answers, or keeps them,
//! compares bytes, so short inputs are compressed as by the zlib of Riak's virtual machine. Longer
//! ones, which need several blocks or more than a window, get the bytes of a library.

use crate::deflate;
use crate::tree::{LEAVES, Tree};
use flate2::Compression;
use flate2::write::{DeflateEncoder, ZlibEncoder};
use ombak_types::VectorClock;
use ombak_types::etf::encode;
use ombak_types::riak_object::clock_to_term;
use std::io::Write;

/// The longest input of which the compressed bytes are those of Riak.
pub const EXACT_BYTES_MAX: usize = deflate::INPUT_BYTES_MAX;

/// The bytes of `zlib:compress/1`.
fn compress(input: &[u8]) -> Vec<u8> {
    deflate::zlib(input).unwrap_or_else(|| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        finished(encoder.write_all(input).and_then(|()| encoder.finish()))
    })
}

/// The compressed leaves of branches of a tree, as Riak compresses them.
pub fn compressed_branches(tree: &Tree, branches: impl Iterator<Item = u32>) -> impl Iterator<Item = (u32, Vec<u8>)> {
    // Most branches of a large tree have no keys.
    let without_keys = compress(&[0; LEAVES * 4]);
    branches.map(move |branch| {
        let has_keys = tree.has_branch(branch);
        (branch, if has_keys { compress(&tree.branch(branch)) } else { without_keys.clone() })
    })
}

/// The bytes of `zlib:zip/1`.
fn compress_raw(input: &[u8]) -> Vec<u8> {
    deflate::deflate_raw(input).unwrap_or_else(|| {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        finished(encoder.write_all(input).and_then(|()| encoder.finish()))
    })
}

/// A clock as Riak gives it to clients (docs/riak/pb-api.md §17).
pub fn riak_clock(clock: &VectorClock) -> Vec<u8> {
    compress_raw(&encode(&clock_to_term(clock)))
}

/// Memory takes every byte, so an encoder that writes to memory does not fail.
fn finished(done: std::io::Result<Vec<u8>>) -> Vec<u8> {
    done.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Segment, TreeSize};
    use std::io::Read;

    #[test]
    fn branches_with_and_without_keys_are_compressed() {
        let mut tree = Tree::new(TreeSize::XxSmall);
        tree.add(Segment { number: 300, alternative: 7 }, 0);
        let found: Vec<_> = compressed_branches(&tree, 0..3).collect();
        let expected = [0, 1, 2].map(|branch| (branch, compress(&tree.branch(branch))));
        assert_eq!(found, expected);
        assert_eq!(found[0].1, found[2].1);
        assert_ne!(found[0].1, found[1].1);
    }

    #[test]
    fn what_is_too_long_for_the_exact_encoder_is_compressed_nevertheless() {
        let long: Vec<u8> = (0..EXACT_BYTES_MAX + 1).map(|at| (at * 7 % 251) as u8).collect();
        let mut read = Vec::new();
        flate2::read::ZlibDecoder::new(&compress(&long)[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, long);
        read.clear();
        flate2::read::DeflateDecoder::new(&compress_raw(&long)[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, long);
    }
}
