//! The data file format: a header, then records one after the other, each with checksums of its own.
//!
//! What it is: encoding, decoding, reading a file from end to end, and the hint file that says what is in it.
//! What it is not: it knows no index and decides nothing about which version counts.
//!
//! Invariants:
//! * of two records of a key the one with the higher `seq` is the newer, whatever file it lies in;
//! * checksums are bound to the file (its salt) and to the place in it, so that bytes of another file, of a client's
//!   value or of a misdirected write are never taken for a record;
//! * head and key are covered by one checksum, the body by another: a head is read without its body.
//!
//! All integers are little-endian. A change of the layout takes a new version number, and the old one stays readable.

mod file_header;
mod hint;
mod record;
mod scan;

pub(crate) use file_header::{FILE_HEADER_BYTES, FileHeader, HeaderError};
pub(crate) use hint::{HintEntry, HintReader, HintWriter, salt_of_hint};
pub(crate) use record::{
    ALL_SYNCED, BodyCoding, EXTRA_BYTES_MAX, Kind, RECORD_HEADER_BYTES, RecordFields, RecordHeader, body_crc,
    encode_record, extra_len, reseal,
};
pub(crate) use scan::{Scanned, Scanner};

/// Version of the data and hint file formats that this build writes.
pub(crate) const FORMAT_VERSION: u16 = 2;
/// Versions that this build reads: 1 is 2 without flags.
pub(crate) const READABLE_VERSIONS: std::ops::RangeInclusive<u16> = 1..=FORMAT_VERSION;

/// Reads an integer at a fixed place of a slice that is known to be long enough.
macro_rules! le_at {
    ($type:ty, $bytes:expr, $at:expr) => {{
        let mut raw = [0u8; size_of::<$type>()];
        raw.copy_from_slice(&$bytes[$at..$at + size_of::<$type>()]);
        <$type>::from_le_bytes(raw)
    }};
}
pub(crate) use le_at;
