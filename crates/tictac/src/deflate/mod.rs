//! Compresses short inputs to the very bytes that zlib gives for them.
//!
//! Riak's virtual machine compresses with zlib, and what it compressed reaches clients. An answer
//! is identical to Riak's only if all choices of this compressor are zlib's: which matches it
//! takes, how it breaks ties between codes, and which kind of block it writes. RFC 1950 and RFC
//! 1951 leave these choices open, so that other compressors give other bytes.
//!
//! The reference is zlib 1.2 and 1.3 with its defaults: level 6, a window of 32 KiB, memory level
//! 8, and the whole input in one call that finishes the stream. Builds of zlib with other hash
//! functions differ from it, such as zlib-ng and those that processor makers tune.
//!
//! This is no general compressor. It has no levels, no streams and no decompressor. Its input is so
//! short that these hold:
//!
//! * All symbols fit into one block, which zlib ends after 16,383 symbols.
//! * All of the input is within reach of each position. No match is too distant for the window.
//! * Every position and every length fits into 16 bits.

mod bits;
mod block;
mod huffman;
mod matches;
#[cfg(test)]
mod tests;

use bits::BitWriter;
use block::Block;
use matches::Matcher;

/// The length of the longest input, in bytes.
pub const INPUT_BYTES_MAX: usize = 16_000;

/// The header of RFC 1950 for a window of 32 KiB and the default level.
const ZLIB_HEADER: [u8; 2] = [0x78, 0x9c];

/// Returns the compressed input without header and checksum (RFC 1951). Returns `None` if the input
/// is longer than [`INPUT_BYTES_MAX`].
#[must_use]
pub fn deflate_raw(input: &[u8]) -> Option<Vec<u8>> {
    compress(input, Vec::new())
}

/// Returns the compressed input with the header and the checksum of zlib (RFC 1950). Returns `None`
/// if the input is longer than [`INPUT_BYTES_MAX`].
#[must_use]
pub fn zlib(input: &[u8]) -> Option<Vec<u8>> {
    let mut output = compress(input, ZLIB_HEADER.to_vec())?;
    output.extend(adler32(input).to_be_bytes());
    Some(output)
}

/// Appends the compressed input to the output.
fn compress(input: &[u8], output: Vec<u8>) -> Option<Vec<u8>> {
    if input.len() > INPUT_BYTES_MAX {
        return None;
    }
    let symbols = Matcher::new(input)?.symbols();
    let mut bits = BitWriter::new(output);
    Block::new(input, &symbols).write(&mut bits);
    Some(bits.finish())
}

/// The checksum of RFC 1950 §8.2.
fn adler32(input: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = input.iter().fold((1, 0), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}
