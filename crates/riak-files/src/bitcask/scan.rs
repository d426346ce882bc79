//! Reads a data file from front to back and skips damage.

use super::key;
use super::record::{HEADER_BYTES, Header, RECORD_BYTES_MAX};
use super::source::Source;
use bytes::Bytes;
use std::io;

/// Bytes that are read at once.
const WINDOW_BYTES: u64 = 1 << 20;
/// The bytes of a candidate that a search for the next record checks: the header and the start of
/// the key.
const PROBE_BYTES: usize = HEADER_BYTES + 3;

/// A piece of a data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A record whose checksum matches.
    Record {
        /// The offset of the record.
        offset: u64,
        /// Unix seconds of the write.
        tstamp_secs: u32,
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// Bytes that are not a record.
    Damage {
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes.
        bytes: u64,
        /// The defect.
        what: &'static str,
    },
}

/// Why there is no valid record at an offset.
enum Bad {
    /// The lengths are possible, but the checksum does not match. Holds the record's length.
    Checksum(u64),
    /// The header has impossible values.
    Header,
    /// The record extends past the end of the file.
    PastEnd,
}

/// Reads a data file from front to back. Stops after an I/O error.
pub struct Scan<S> {
    source: S,
    length: u64,
    offset: u64,
    window: Bytes,
    window_at: u64,
    /// The bytes of candidates for which a search may still compute checksums. Without a bound, a
    /// malicious file could take forever.
    search_bytes_left: u64,
}

impl<S: Source> Scan<S> {
    /// A scan from `offset`, which must be the start of a record, to `length`, the end of the file.
    pub fn new(source: S, length: u64, offset: u64) -> Self {
        let search_bytes_left = length.saturating_mul(2).saturating_add(64 << 20);
        Self { source, length, offset, window: Bytes::new(), window_at: 0, search_bytes_left }
    }

    /// The next piece; `None` at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<Piece>> {
        if self.offset >= self.length {
            return Ok(None);
        }
        let offset = self.offset;
        match self.record_at(offset)? {
            Ok((header, record)) => {
                self.offset += header.record_bytes();
                let value_at = HEADER_BYTES + usize::from(header.key_bytes);
                Ok(Some(Piece::Record {
                    offset,
                    tstamp_secs: header.tstamp_secs,
                    key: record.slice(HEADER_BYTES..value_at),
                    value: record.slice(value_at..),
                }))
            }
            Err(bad) => {
                let next = self.after_damage(offset, &bad)?;
                let torn = next.is_none() && !matches!(bad, Bad::Checksum(_));
                self.offset = next.unwrap_or(self.length);
                let what = match bad {
                    _ if torn => "the file ends with a record that was cut short",
                    Bad::Checksum(_) => "the record does not match its checksum",
                    Bad::Header | Bad::PastEnd => "no record starts here",
                };
                Ok(Some(Piece::Damage { offset, bytes: self.offset - offset, what }))
            }
        }
    }

    /// The record at `offset`, if it is valid.
    fn record_at(&mut self, offset: u64) -> io::Result<Result<(Header, Bytes), Bad>> {
        let left = self.length - offset;
        if left < HEADER_BYTES as u64 {
            return Ok(Err(Bad::PastEnd));
        }
        let Some(header) = Header::parse(&self.bytes_at(offset, HEADER_BYTES as u64)?) else {
            return Ok(Err(Bad::PastEnd));
        };
        let total = header.record_bytes();
        if header.key_bytes == 0 || total > RECORD_BYTES_MAX {
            return Ok(Err(Bad::Header));
        }
        if total > left {
            return Ok(Err(Bad::PastEnd));
        }
        let record = self.bytes_at(offset, total)?;
        Ok(if header.matches(&record) { Ok((header, record)) } else { Err(Bad::Checksum(total)) })
    }

    /// The offset at which to continue after a bad record at `offset`.
    fn after_damage(&mut self, offset: u64, bad: &Bad) -> io::Result<Option<u64>> {
        if let Bad::Checksum(total) = bad {
            // If the lengths are right, the next record or the end of the file follows.
            let next = offset + total;
            if next == self.length || self.plausible_at(next)? {
                return Ok(Some(next));
            }
        }
        let mut candidate = offset + 1;
        while candidate + PROBE_BYTES as u64 <= self.length {
            if self.plausible_at(candidate)? {
                match self.record_at(candidate)? {
                    Ok(_) => return Ok(Some(candidate)),
                    Err(Bad::Checksum(total)) if total > self.search_bytes_left => return Ok(None),
                    Err(Bad::Checksum(total)) => self.search_bytes_left -= total,
                    Err(Bad::Header | Bad::PastEnd) => {}
                }
            }
            candidate += 1;
        }
        Ok(None)
    }

    fn plausible_at(&mut self, offset: u64) -> io::Result<bool> {
        if self.length - offset < PROBE_BYTES as u64 {
            return Ok(false);
        }
        self.fill(offset, PROBE_BYTES as u64)?;
        let at = usize::try_from(offset - self.window_at).unwrap_or(usize::MAX);
        let probe = self.window.get(at..).unwrap_or_default();
        let Some(start) = probe.get(HEADER_BYTES..PROBE_BYTES) else { return Ok(false) };
        let Some(header) = Header::parse(probe) else { return Ok(false) };
        Ok(key::plausible(start, usize::from(header.key_bytes))
            && header.record_bytes() <= (self.length - offset).min(RECORD_BYTES_MAX))
    }

    /// `count` bytes from `offset`, which must be within the file.
    fn bytes_at(&mut self, offset: u64, count: u64) -> io::Result<Bytes> {
        self.fill(offset, count)?;
        let at = usize::try_from(offset - self.window_at).unwrap_or(usize::MAX);
        let end = at.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
        if end > self.window.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.window.slice(at..end))
    }

    fn fill(&mut self, offset: u64, count: u64) -> io::Result<()> {
        let window_end = self.window_at + self.window.len() as u64;
        if offset >= self.window_at && offset + count <= window_end {
            return Ok(());
        }
        let length = count.max(WINDOW_BYTES).min(self.length - offset);
        let mut buffer = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.source.read_exact_at(&mut buffer, offset)?;
        self.window = Bytes::from(buffer);
        self.window_at = offset;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::encode_record;
    use super::*;
    use proptest::prelude::*;

    const KEY: &[u8] = b"\x02\x00\x01bkey";

    fn file(records: u8) -> (Vec<u8>, Vec<u64>) {
        let (mut out, mut starts) = (Vec::new(), Vec::new());
        for n in 0..records {
            starts.push(out.len() as u64);
            encode_record(u32::from(n), KEY, &vec![n; 20 + usize::from(n)], &mut out);
        }
        (out, starts)
    }

    fn pieces(bytes: &[u8]) -> Vec<Piece> {
        let mut scan = Scan::new(bytes, bytes.len() as u64, 0);
        std::iter::from_fn(|| scan.next_piece().unwrap()).collect()
    }

    fn starts_of(pieces: &[Piece]) -> Vec<u64> {
        let records = pieces.iter().filter_map(|p| match p {
            Piece::Record { offset, .. } => Some(*offset),
            Piece::Damage { .. } => None,
        });
        records.collect()
    }

    fn damage_of(pieces: &[Piece]) -> Vec<(u64, u64, &'static str)> {
        let damage = pieces.iter().filter_map(|p| match p {
            Piece::Damage { offset, bytes, what } => Some((*offset, *bytes, *what)),
            Piece::Record { .. } => None,
        });
        damage.collect()
    }

    /// The first record of a file of a live Riak node (docs/riak/backends.md §2.9): its key and the
    /// sizes in its header.
    #[test]
    fn a_live_header_is_understood() {
        let header = Header::parse(b"\0\0\0\0\0\0\0\x01\x00\x16\x00\x00\x04\x9f").unwrap();
        assert_eq!((header.key_bytes, header.value_bytes), (22, 1183));
        assert!(key::plausible(b"\x02\x00\x08bench_n1key00000098", 22));
    }

    #[test]
    fn a_whole_file_is_read() {
        let (bytes, starts) = file(5);
        let pieces = pieces(&bytes);
        assert_eq!(starts_of(&pieces), starts);
        assert!(matches!(&pieces[2], Piece::Record { tstamp_secs: 2, key, value, .. }
            if key == KEY && value[..] == [2; 22]));
    }

    #[test]
    fn a_torn_tail_costs_the_last_record_only() {
        let (bytes, starts) = file(3);
        for cut in starts[2] as usize + 1..bytes.len() {
            let pieces = pieces(&bytes[..cut]);
            assert_eq!(starts_of(&pieces), starts[..2], "cut at {cut}");
            assert_eq!(
                damage_of(&pieces),
                [(starts[2], cut as u64 - starts[2], "the file ends with a record that was cut short")]
            );
        }
    }

    #[test]
    fn a_flipped_bit_costs_one_record_wherever_it_is() {
        let (bytes, starts) = file(4);
        for at in starts[1]..starts[2] {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at as usize] ^= 1 << bit;
                let pieces = pieces(&bad);
                assert_eq!(starts_of(&pieces), [starts[0], starts[2], starts[3]], "byte {at} bit {bit}");
                assert_eq!(damage_of(&pieces).len(), 1);
            }
        }
    }

    #[test]
    fn zeros_at_the_end_are_one_damage() {
        let (mut bytes, starts) = file(2);
        bytes.resize(bytes.len() + 5000, 0);
        let pieces = pieces(&bytes);
        assert_eq!(starts_of(&pieces), starts);
        assert_eq!(damage_of(&pieces).len(), 1);
    }

    #[test]
    fn a_record_larger_than_a_window_is_read() {
        let mut bytes = Vec::new();
        encode_record(1, KEY, &vec![7; 3 << 20], &mut bytes);
        encode_record(2, KEY, b"x", &mut bytes);
        assert_eq!(starts_of(&pieces(&bytes)).len(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_bytes_are_accounted_for(bytes in prop::collection::vec(any::<u8>(), 0..400), good in 0u8..3) {
            let (mut all, starts) = file(good);
            all.extend_from_slice(&bytes);
            let pieces = pieces(&all);
            prop_assert!(starts_of(&pieces).starts_with(&starts));
            let mut at = 0;
            for piece in &pieces {
                let (offset, length) = match piece {
                    Piece::Record { offset, key, value, .. } => (*offset, (HEADER_BYTES + key.len() + value.len()) as u64),
                    Piece::Damage { offset, bytes, .. } => (*offset, *bytes),
                };
                prop_assert_eq!(offset, at);
                at += length;
            }
            prop_assert_eq!(at, all.len() as u64);
        }
    }
}
