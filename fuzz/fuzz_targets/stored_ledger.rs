//! The contents of a ledger: entries of keys, index entries, the ordered index of a bitcask store,
//! checkpoints.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_storage::fuzzing::ledger(bytes));
