//! The payload of one data type: a tag, a version and what the version stores.

use crate::BadBytes;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ombak_types::etf::{self, EtfError, Limits, MAGIC, Term};
use std::io::Write as _;

/// The limits for one term: a set of a million members, and the largest objects.
const LIMITS: Limits = Limits { terms_max: 8 << 20, inflated_bytes_max: 64 << 20, depth_max: etf::DEPTH_MAX };

/// The level of compression that Riak uses by default (`datatypes.compression_level`).
const COMPRESSION: Compression = Compression::new(1);

/// A payload in its parts.
pub(super) struct Payload<'a> {
    pub(super) tag: u8,
    pub(super) version: u8,
    pub(super) rest: &'a [u8],
}

impl<'a> Payload<'a> {
    pub(super) fn split(bytes: &'a [u8]) -> Result<Self, BadBytes> {
        match bytes {
            [tag, version, rest @ ..] => Ok(Self { tag: *tag, version: *version, rest }),
            _ => Err(BadBytes::CutShort),
        }
    }

    /// Checks the tag, and that the version is known.
    pub(super) fn expect(&self, tag: u8, versions: &[u8]) -> Result<(), BadBytes> {
        if self.tag != tag {
            return Err(BadBytes::UnknownType);
        }
        if versions.contains(&self.version) { Ok(()) } else { Err(BadBytes::UnknownVersion(self.version)) }
    }

    /// Decodes the rest as a term.
    pub(super) fn term(&self) -> Result<Term, EtfError> {
        etf::decode_with(self.rest, LIMITS)
    }
}

/// A payload of a term, compressed where that is shorter, as Erlang does.
pub(super) fn of_term(tag: u8, version: u8, term: &Term) -> Vec<u8> {
    let plain = etf::encode(term);
    let mut out = vec![tag, version];
    match compressed(&plain) {
        Some(bytes) if bytes.len() < plain.len() => out.extend_from_slice(&bytes),
        _ => out.extend_from_slice(&plain),
    }
    out
}

/// A term as 131, 80, its size, and a zlib stream of it.
fn compressed(plain: &[u8]) -> Option<Vec<u8>> {
    let body = plain.get(1..)?;
    let mut out = vec![MAGIC, 80];
    out.extend_from_slice(&u32::try_from(body.len()).ok()?.to_be_bytes());
    let mut encoder = ZlibEncoder::new(out, COMPRESSION);
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

/// A payload of a term that is not compressed.
pub(super) fn plain_of_term(tag: u8, version: u8, term: &Term) -> Vec<u8> {
    let mut out = vec![tag, version];
    etf::encode_to(term, &mut out);
    out
}
