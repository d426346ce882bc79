//! Compresses bodies with gzip.

use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::bufread::GzEncoder;
use std::io::Read;

/// The gzip form of a body; `None` if compressing fails.
pub fn compress(plain: Bytes) -> Option<Bytes> {
    let mut packed = Vec::with_capacity(plain.len() / 2);
    GzEncoder::new(plain.reader(), Compression::fast()).read_to_end(&mut packed).ok()?;
    Some(Bytes::from(packed))
}
