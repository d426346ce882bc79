//! The reader of Riak's bitcask files: data files with damage anywhere, hint files, keys. It ends,
//! reports damage in order, and never returns overlapping pieces.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ombak_riak_files::bitcask::scan::{Piece, Scan};
use ombak_riak_files::bitcask::{hint, key};

fuzz_target!(|bytes: &[u8]| {
    let mut scan = Scan::new(bytes, bytes.len() as u64, 0);
    let mut end = 0;
    while let Ok(Some(piece)) = scan.next_piece() {
        let (offset, length) = match piece {
            Piece::Record { offset, key, value, .. } => (offset, (key.len() + value.len()) as u64),
            Piece::Damage { offset, bytes, .. } => (offset, bytes),
        };
        assert!(offset >= end, "pieces come in order and do not overlap");
        assert!(offset + length <= bytes.len() as u64, "a piece lies in the file");
        end = offset + length;
    }
    if let Ok(entries) = hint::check(bytes, u64::MAX) {
        entries.for_each(drop);
    }
    let _ = key::decode(&Bytes::copy_from_slice(bytes));
});
