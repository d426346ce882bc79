//! The small files of a store: its identity, its inventory, the note of lost ranges, the note of
//! what its index must have seen, and the commit files of merges.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_storage::fuzzing::notes(bytes));
