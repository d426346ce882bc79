//! The format of data files: a header, then records one after another, each with its own checksums.
//!
//! What it is: encoding, decoding, reading a file from end to end, and the hint file that lists the
//! records of a data file.
//!
//! What it is not: it knows no index and does not decide which version is current.
//!
//! Invariants:
//! * Of two records of a key, the one with the higher `seq` is newer, whichever files they lie in.
//! * Checksums include the salt of the file and the offset in it. So bytes of another file, of a
//!   client's value or of a misdirected write are never taken for a record.
//! * One checksum covers key and head, another one the body: a head can be read without its body.
//!
//! All integers are little-endian. A change of the layout gets a new version number, and old
//! versions stay readable.

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
/// Versions that this build reads. Version 1 is version 2 without flags.
pub(crate) const READABLE_VERSIONS: std::ops::RangeInclusive<u16> = 1..=FORMAT_VERSION;

/// Reads an integer at a fixed offset of a slice that is known to be long enough.
macro_rules! le_at {
    ($type:ty, $bytes:expr, $at:expr) => {{
        let mut raw = [0u8; size_of::<$type>()];
        raw.copy_from_slice(&$bytes[$at..$at + size_of::<$type>()]);
        <$type>::from_le_bytes(raw)
    }};
}
pub(crate) use le_at;
