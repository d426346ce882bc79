//! Bodies on disk: compressed if that is configured and saves enough.

use super::format::{BodyCoding, le_at};
use crate::limits::VERSION_BYTES_MAX;
use bytes::Bytes;

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// With lz4: fast.
    Lz4,
    /// With zstd at this level (1 to 22): small.
    Zstd(i32),
}

/// When bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionPoint {
    /// When they are written.
    #[default]
    OnReceipt,
    /// When they are first merged, so that writing stays fast.
    OnCompact,
}

/// Shorter bodies are not compressed.
const BODY_BYTES_MIN: usize = 256;
/// Compression must save one part in this many.
const SAVING_MIN: usize = 16;
/// The length before compression, stored in front of the compressed bytes.
const LENGTH_BYTES: usize = 4;

/// The compressed form of a body, if that is clearly shorter.
pub(super) fn compress(compression: Compression, parts: &[&[u8]]) -> Option<(BodyCoding, Vec<u8>)> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if compression == Compression::None || length < BODY_BYTES_MIN {
        return None;
    }
    let whole;
    let body = match parts {
        [body] => *body,
        _ => {
            whole = parts.concat();
            &whole[..]
        }
    };
    // The cast is safe: a version has at most VERSION_BYTES_MAX bytes.
    let mut out = (length as u32).to_le_bytes().to_vec();
    let coding = match compression {
        Compression::None => return None,
        Compression::Lz4 => {
            out.resize(LENGTH_BYTES + lz4_flex::block::get_maximum_output_size(length), 0);
            let written = lz4_flex::block::compress_into(body, &mut out[LENGTH_BYTES..]).ok()?;
            out.truncate(LENGTH_BYTES + written);
            BodyCoding::Lz4
        }
        Compression::Zstd(level) => {
            out.resize(LENGTH_BYTES + zstd::zstd_safe::compress_bound(length), 0);
            let written = zstd::bulk::compress_to_buffer(body, &mut out[LENGTH_BYTES..], level).ok()?;
            out.truncate(LENGTH_BYTES + written);
            BodyCoding::Zstd
        }
    };
    (out.len() + length / SAVING_MIN < length).then_some((coding, out))
}

/// The longest body that this many compressed bytes can stand for. A stored length beyond it is not
/// believed.
fn body_len_max(coding: BodyCoding, compressed_len: usize) -> usize {
    let bytes_max_per_byte = match coding {
        BodyCoding::Plain => 1,
        // One more byte lengthens a match by at most 255.
        BodyCoding::Lz4 => 255,
        // A block of 128 KiB takes at least three bytes of header and one of content.
        BodyCoding::Zstd => (128 << 10) / 4,
    };
    compressed_len.saturating_mul(bytes_max_per_byte).min(VERSION_BYTES_MAX)
}

/// The body that was stored in this form; none if the bytes are not valid in it.
pub(crate) fn decompress(coding: BodyCoding, stored: Bytes) -> Option<Bytes> {
    if coding == BodyCoding::Plain {
        return Some(stored);
    }
    let compressed = stored.get(LENGTH_BYTES..)?;
    let length = le_at!(u32, stored, 0) as usize;
    if length > body_len_max(coding, compressed.len()) {
        return None;
    }
    let body = match coding {
        BodyCoding::Plain => return None,
        BodyCoding::Lz4 => lz4_flex::block::decompress(compressed, length).ok()?,
        BodyCoding::Zstd => zstd::bulk::decompress(compressed, length).ok()?,
    };
    (body.len() == length).then(|| body.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Compression; 3] = [Compression::Lz4, Compression::Zstd(1), Compression::Zstd(9)];

    proptest! {
        #[test]
        fn bodies_come_back(
            pattern in prop::collection::vec(any::<u8>(), 1..40), times in 1usize..100, cut in any::<prop::sample::Index>(),
        ) {
            let body = pattern.repeat(times);
            let (left, right) = body.split_at(cut.index(body.len() + 1));
            for compression in ALL {
                let Some((coding, stored)) = compress(compression, &[left, right]) else { continue };
                prop_assert!(stored.len() < body.len());
                let back = decompress(coding, stored.into());
                prop_assert_eq!(back.as_deref(), Some(&body[..]));
            }
        }

        #[test]
        fn anything_is_decompressed_or_refused(stored in prop::collection::vec(any::<u8>(), 0..200)) {
            for coding in [BodyCoding::Lz4, BodyCoding::Zstd] {
                let _ = decompress(coding, stored.clone().into());
            }
        }
    }

    #[test]
    fn a_length_that_so_few_bytes_cannot_have_is_not_believed() {
        let body = vec![0; 4 << 20];
        for compression in ALL {
            let (coding, stored) = compress(compression, &[&body]).unwrap();
            let compressed_len = stored.len() - LENGTH_BYTES;
            assert!(body.len() <= body_len_max(coding, compressed_len), "{compression:?}: {compressed_len}");
            assert!(body_len_max(coding, compressed_len) < 100 * body.len(), "{compression:?}: {compressed_len}");
        }
    }

    #[test]
    fn what_does_not_pay_stays_as_it_is() {
        let noise: Vec<u8> = (0u32..1000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for compression in ALL {
            assert!(compress(compression, &[&[b'a'; 255]]).is_none(), "short");
            assert!(compress(compression, &[&[b'a'; 256]]).is_some());
            assert!(compress(compression, &[&noise[..300]]).is_none(), "noise");
        }
        assert!(compress(Compression::None, &[&[b'a'; 1000]]).is_none());
    }
}
