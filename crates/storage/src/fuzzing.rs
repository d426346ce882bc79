//! Checks of every decoder of bytes from a disk, for the fuzz targets and for the tests of this
//! crate.
//!
//! No bytes may make a decoder panic or use more memory than the bytes justify. What a decoder
//! accepts must be what the encoder writes. Checksums would stop a fuzzer, so each layout is tested
//! with the bytes as they are, and again with right checksums.

use crate::backend::ReadMode;
use crate::bitcask::check_order_entry;
use crate::fold::TermRange;
use crate::fs::sim::FaultyFs;
use crate::fs::{File, FileSystem, OpenMode};
use crate::inventory::Inventory;
use crate::journal::format::{
    BodyCoding, FILE_HEADER_BYTES, FileHeader, HintEntry, HintReader, HintWriter, RECORD_HEADER_BYTES, RecordFields,
    RecordHeader, Scanned, Scanner, encode_record, reseal, salt_of_hint,
};
use crate::journal::{
    Checkpoint, IdentityRecord, LostNote, decode_commit, decompress, encode_commit, index_must_have_seen, is_checkpoint,
};
use crate::ledger::{LedgerKey, TermBounds, decode_entry, encode_entry, put_escaped, put_term_prefix};
use bytes::{BufMut, Bytes, BytesMut};
use std::path::Path;
use std::sync::Arc;

const FILE_ID: u32 = 1;
const SALT: u64 = 0x0123_4567_89AB_CDEF;
const PATH: &str = "/file";

/// The bytes, followed by their checksum.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    [bytes, &crc32fast::hash(bytes).to_le_bytes()].concat()
}

fn file_of(fs: &FaultyFs, bytes: &[u8]) -> Arc<dyn File> {
    let file = fs.open(Path::new(PATH), OpenMode::CreateNew).expect("a name that is free");
    file.write_at(bytes, 0).expect("a file takes bytes");
    file
}

/// Checks the contents of a ledger: entries, index entries, the ordered index of a bitcask store,
/// checkpoints.
pub fn ledger(bytes: &[u8]) {
    let whole = Bytes::copy_from_slice(bytes);
    if let Some(read) = decode_entry(&whole) {
        let key = LedgerKey { bytes: Bytes::new(), whole: read.whole_key.clone() };
        let body = read.body.as_deref();
        let parts = body.as_ref().map(std::slice::from_ref);
        assert_eq!(encode_entry(&key, &read.entry, read.tstamp_secs, &read.head, parts), whole);
    }
    let (bucket, field) = (b"\x02\0\x01b", b"f_bin");
    let range = TermRange { bucket, field, from: b"", to: b"\xff", after: None };
    let mut place = BytesMut::new();
    put_term_prefix(bucket, field, &mut place);
    let prefix_len = place.len();
    place.put_slice(bytes);
    if let Some((term, key)) = TermBounds::new(&range).split(&place) {
        let mut again = BytesMut::from(&place[..prefix_len]);
        put_escaped(&term, &mut again);
        again.put_slice(key);
        assert_eq!(again, place);
    }
    check_order_entry(&whole);
    for bytes in [bytes, &sealed(&[&1u16.to_le_bytes(), bytes].concat())] {
        let read = Checkpoint::decode(bytes);
        assert_eq!(read.is_some(), is_checkpoint(bytes));
        // Its files may be listed in any order.
        assert!(read.is_none_or(|read| Checkpoint::decode(&read.encode()) == Some(read)));
    }
}

/// Checks the small files in the directory of a store.
pub fn notes(bytes: &[u8]) {
    let path = Path::new(PATH);
    // The unused bytes after the version are not compared.
    let again =
        |read: &[u8], encoded: Vec<u8>| assert!(read.len() == encoded.len(), "{read:?} was read, {encoded:?} written");
    let version = |version: u16, magic: &[u8]| [magic, &version.to_le_bytes(), bytes].concat();
    for bytes in [bytes, &sealed(&version(1, b"OMBAKLST"))] {
        if let Ok(Some(note)) = LostNote::decode(bytes, path) {
            assert_eq!(LostNote::decode(&note.encode(), path).ok().flatten(), Some(note.clone()));
            again(bytes, note.encode());
        }
    }
    for bytes in [bytes, &sealed(&version(1, b"OMBAKINV"))] {
        if let Ok(Some(inventory)) = Inventory::decode(bytes, path) {
            assert_eq!(Inventory::decode(&inventory.encode(), path).ok().flatten().as_ref(), Some(&inventory));
            again(bytes, inventory.encode());
        }
    }
    for bytes in [bytes, &sealed(&version(1, b"OMBAKCOV"))] {
        if let Ok(Some(seq)) = index_must_have_seen::decode(bytes, path) {
            assert_eq!(
                index_must_have_seen::decode(&index_must_have_seen::encode(seq), path).ok().flatten(),
                Some(seq)
            );
            again(bytes, index_must_have_seen::encode(seq));
        }
    }
    for bytes in [bytes, &sealed(&version(1, b"OMBAKSID"))] {
        if let Ok(Some((record, file_identity))) = IdentityRecord::decode(bytes, path) {
            assert_eq!(
                IdentityRecord::decode(&record.encode(file_identity), path).ok().flatten(),
                Some((record, file_identity))
            );
            again(bytes, record.encode(file_identity));
        }
    }
    for bytes in [bytes, &sealed(&version(1, b"OMBAKCMT")), &sealed(&version(2, b"OMBAKCMT"))] {
        if let Ok(Some(files)) = decode_commit(bytes, path) {
            assert_eq!(decode_commit(&encode_commit(&files), path).ok().flatten().as_ref(), Some(&files));
            again(bytes, encode_commit(&files));
        }
    }
}

/// Checks hint files: a whole one, and the content of a block.
pub fn hint(bytes: &[u8]) {
    read_hint(bytes);
    let fs = FaultyFs::new(1);
    let path = Path::new(PATH);
    let writer = HintWriter::create(&*fs, path.to_owned(), FILE_ID, SALT).expect("a hint file begins");
    writer.finish(&*fs, path, 0, 0).expect("a hint file ends");
    let length = fs.length(path).expect("there is a file") as usize;
    let mut whole = vec![0; length];
    let file = fs.open(path, OpenMode::Read).expect("there is a file");
    file.read_at(&mut whole, 0, ReadMode::Blocking).expect("it is read");
    let (header, trailer) = whole.split_at(length / 2);
    let block = [&(bytes.len() as u32).to_le_bytes()[..], &crc32fast::hash(bytes).to_le_bytes(), bytes].concat();
    let entries = read_hint(&[header, &block, trailer].concat());
    if entries.is_empty() {
        return;
    }
    let fs = FaultyFs::new(1);
    let mut writer = HintWriter::create(&*fs, path.to_owned(), FILE_ID, SALT).expect("a hint file begins");
    for (entry, key) in &entries {
        writer.add(&HintEntry { key, ..*entry }).expect("an entry is added");
    }
    writer.finish(&*fs, path, 0, 0).expect("a hint file ends");
    let reader = HintReader::open(fs.open(path, OpenMode::Read).expect("there is a file"), FILE_ID, SALT);
    let mut again = Vec::new();
    let is_whole = reader.expect("it is read").expect("it is one").for_each(|entry| again.push(owned(&entry)));
    assert!(is_whole.expect("it is read") && again == entries);
}

fn owned(entry: &HintEntry<'_>) -> (HintEntry<'static>, Vec<u8>) {
    (HintEntry { key: b"", ..*entry }, entry.key.to_vec())
}

fn read_hint(bytes: &[u8]) -> Vec<(HintEntry<'static>, Vec<u8>)> {
    let fs = FaultyFs::new(1);
    let file = file_of(&fs, bytes);
    let salt = salt_of_hint(&*file, FILE_ID).expect("a file is read");
    let mut entries = Vec::new();
    if let Some(reader) = HintReader::open(file, FILE_ID, salt.unwrap_or(SALT)).expect("a file is read") {
        reader.for_each(|entry| entries.push(owned(&entry))).expect("a file is read");
    }
    entries
}

/// Checks data files: headers, records, compressed bodies.
pub fn record(bytes: &[u8]) {
    if let Ok(header) = FileHeader::decode(bytes) {
        assert_eq!(FileHeader::decode(&header.encode()), Ok(header));
    }
    FileHeader::decode_corrected(bytes);
    scan(bytes);
    // Once more, with the mark and the checksums of a record of this file.
    let mut bytes = bytes.to_vec();
    if bytes.len() < RECORD_HEADER_BYTES {
        return;
    }
    bytes[10..12].copy_from_slice(&(SALT as u16).to_le_bytes());
    let Some(header) = RecordHeader::parse(&bytes, SALT).filter(|header| header.total_len() <= bytes.len() as u64)
    else {
        return;
    };
    let (meta_len, total_len) = (header.meta_len() as usize, header.total_len() as usize);
    let body = Bytes::copy_from_slice(&bytes[meta_len..total_len]);
    bytes[4..8].copy_from_slice(&crc32fast::hash(&body).to_le_bytes());
    reseal(&mut bytes, meta_len, SALT, FILE_HEADER_BYTES as u64);
    assert_eq!(scan(&bytes).first().map(Vec::as_slice), Some(&bytes[..total_len]));
    let is_plain = header.coding == BodyCoding::Plain;
    let decompressed = decompress(header.coding, body.clone());
    assert!(!is_plain || decompressed == Some(body));
}

/// The records in a file with these bytes after its header.
fn scan(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (fs, start) = (FaultyFs::new(1), FILE_HEADER_BYTES as u64);
    let header = FileHeader { file_id: FILE_ID, created_secs: 0, salt: SALT }.encode();
    let file = file_of(&fs, &[&header, bytes].concat());
    let end = start + bytes.len() as u64;
    let mut scanner = Scanner::new(&*file, SALT, start, end);
    let (mut reached, mut records) = (start, Vec::new());
    while let Some(piece) = scanner.next().expect("a file is read") {
        let (offset, length) = match &piece {
            Scanned::Record { offset, header } => (*offset, header.total_len()),
            Scanned::Damage { offset, length } => (*offset, *length),
        };
        assert!(offset == reached && length > 0 && offset + length <= end, "{piece:?} behind {reached}");
        reached = offset + length;
        if let Scanned::Record { offset, header } = piece {
            records.push(again(&mut scanner, offset, &header));
            let at = (offset - start) as usize;
            assert_eq!(records.last().map(Vec::as_slice), bytes.get(at..at + length as usize));
        }
    }
    assert_eq!(reached, end);
    records
}

/// Encodes a record again that was read.
fn again(scanner: &mut Scanner<'_>, offset: u64, header: &RecordHeader) -> Vec<u8> {
    let key = scanner.key(offset, header).expect("a key is read").to_vec();
    let head = scanner.head(offset, header).expect("a head is read").to_vec();
    let body = scanner.body(offset, header).expect("a body is read");
    let matches = scanner.body_matches(offset, header).expect("a body is read");
    assert_eq!(matches, crc32fast::hash(&body) == header.crc_body);
    let fields = RecordFields {
        kind: header.kind,
        tstamp_secs: header.tstamp_secs,
        expires_secs: header.expires_secs,
        synced_to: header.synced_to,
        seq: header.seq,
        digest: header.digest,
        coding: header.coding,
        has_terms: header.has_terms,
        crc_body: header.crc_body,
    };
    let mut out = Vec::new();
    encode_record(&mut out, &fields, &key, &head, &[&body], SALT, offset);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes in which counts and lengths are usually small.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![5 => Just(0u8), 2 => 1..5u8, 1 => any::<u8>()], 0..260)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in any_bytes()) {
            ledger(&bytes);
            notes(&bytes);
            hint(&bytes);
            record(&bytes);
        }

        #[test]
        fn what_could_be_a_record_comes_back(
            kind in 1..3u8, flags in 0..16u8, lengths in (0..9u8, 0..9u8, 0..9u8), rest in any_bytes(),
        ) {
            let mut bytes = vec![0; RECORD_HEADER_BYTES];
            (bytes[8], bytes[9]) = (kind, flags);
            (bytes[12], bytes[16], bytes[20]) = (lengths.0, lengths.1, lengths.2);
            bytes.extend_from_slice(&rest);
            record(&bytes);
        }
    }
}
