//! The small files of a store: its identity, its inventory, what it knows to be lost, what its
//! index has seen, which files a merge removes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_storage::fuzzing::notes(bytes));
