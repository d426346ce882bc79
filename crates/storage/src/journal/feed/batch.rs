//! Records of a data file that a walk looks up together.

use crate::journal::format::{RecordHeader, Scanned, Scanner};
use std::io;
use std::ops::Range;

/// Some records that follow each other in a file, those after the cursor of a walk. The window of a
/// scanner holds them at once, which bounds their number.
pub(super) struct Batch {
    records: Vec<Keyed>,
    /// The keys of all records.
    keys: Vec<u8>,
    /// The highest `seq` that was met, also of records before the cursor.
    pub(super) seq_max: u64,
    /// Where the next record begins.
    pub(super) end: u64,
}

struct Keyed {
    offset: u64,
    header: RecordHeader,
    key: Range<usize>,
}

/// A record of a batch.
pub(super) struct BatchRecord<'a> {
    pub(super) offset: u64,
    pub(super) header: &'a RecordHeader,
    pub(super) key: &'a [u8],
}

impl Batch {
    /// Reads on, up to `count_max` records with a `seq` above `after_seq`, and up to the record
    /// that reaches the offset `stop`. None: something is damaged.
    pub(super) fn read(
        scanner: &mut Scanner<'_>,
        after_seq: u64,
        count_max: usize,
        stop: u64,
    ) -> io::Result<Option<Self>> {
        scanner.hold_next();
        let mut batch = Self { records: Vec::new(), keys: Vec::new(), seq_max: 0, end: stop };
        loop {
            match scanner.next()? {
                None => return Ok(Some(batch)),
                Some(Scanned::Damage { .. }) => return Ok(None),
                Some(Scanned::Record { offset, header }) => {
                    if header.seq > after_seq {
                        let key_start = batch.keys.len();
                        batch.keys.extend_from_slice(scanner.key(offset, &header)?);
                        batch.records.push(Keyed { offset, header, key: key_start..batch.keys.len() });
                    }
                    batch.seq_max = batch.seq_max.max(header.seq);
                    batch.end = offset + header.total_len();
                }
            }
            if batch.records.len() >= count_max || batch.end >= stop || !scanner.holds_next() {
                return Ok(Some(batch));
            }
        }
    }

    /// The records in the order of the file.
    pub(super) fn records(&self) -> impl Iterator<Item = BatchRecord<'_>> {
        let key = |range: &Range<usize>| self.keys.get(range.clone()).unwrap_or_default();
        self.records.iter().map(move |Keyed { offset, header, key: range }| BatchRecord {
            offset: *offset,
            header,
            key: key(range),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::FaultyFs;
    use crate::fs::{File, FileSystem, OpenMode};
    use crate::journal::format::{BodyCoding, Kind, RecordFields, encode_record};
    use std::path::Path;
    use std::sync::Arc;

    const SALT: u64 = 0x1234_5678;

    /// A file of records with the `seq` 1, 2 and so on, whose bodies have these lengths, and its
    /// length.
    fn file_of(bodies: impl Iterator<Item = usize>) -> (Arc<dyn File>, u64) {
        let mut bytes = Vec::new();
        for (seq, length) in (1..).zip(bodies) {
            let fields = RecordFields {
                kind: Kind::Put,
                tstamp_secs: 5,
                expires_secs: 0,
                synced_to: 0,
                seq,
                digest: 7,
                coding: BodyCoding::Plain,
                has_terms: false,
                crc_body: 0,
            };
            let (offset, key, body) = (bytes.len() as u64, format!("key {seq}"), vec![1_u8; length]);
            encode_record(&mut bytes, &fields, key.as_bytes(), b"", &[&body[..]], SALT, offset);
        }
        let fs = FaultyFs::new(1);
        fs.create_dir_all(Path::new("/d")).unwrap();
        let file = fs.open(Path::new("/d/f"), OpenMode::CreateNew).unwrap();
        file.write_at(&bytes, 0).unwrap();
        (file, bytes.len() as u64)
    }

    /// How many records each batch of a file has that is read to its end.
    fn batch_lengths(file: &dyn File, end: u64, after_seq: u64, count_max: usize) -> Vec<usize> {
        let (mut scanner, mut lengths, mut at, mut passed) = (Scanner::new(file, SALT, 0, end), Vec::new(), 0, 0);
        while at < end {
            let batch = Batch::read(&mut scanner, after_seq, count_max, end).unwrap().unwrap();
            for record in batch.records() {
                passed = passed.max(after_seq) + 1;
                assert_eq!((record.header.seq, record.key), (passed, format!("key {passed}").as_bytes()));
            }
            lengths.push(batch.records().count());
            at = batch.end;
        }
        lengths
    }

    #[test]
    fn a_batch_has_the_records_of_a_window_and_no_more_than_are_wanted() {
        let (file, end) = file_of((0..100).map(|_| 50));
        assert_eq!(batch_lengths(&*file, end, 0, 1000), [100]);
        assert_eq!(batch_lengths(&*file, end, 95, 1000), [5]);
        assert_eq!(batch_lengths(&*file, end, 0, 40), [40, 40, 20]);
        let (file, end) = file_of([100, 100, 1 << 20, 100, 200_000, 200_000, 100].into_iter());
        assert_eq!(batch_lengths(&*file, end, 0, 1000), [2, 1, 2, 2]);
    }

    #[test]
    fn damage_is_none() {
        let (file, end) = file_of((0..100).map(|_| 50));
        file.write_at(&[0; 120], 1000).unwrap();
        let mut scanner = Scanner::new(&*file, SALT, 0, end);
        let before = Batch::read(&mut scanner, 0, 1000, end).unwrap().unwrap();
        assert_eq!(before.records().count(), 10);
        assert!(Batch::read(&mut scanner, 0, 1000, end).unwrap().is_none());
    }
}
