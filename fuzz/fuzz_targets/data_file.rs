//! Data files: the header, records with damage anywhere, compressed bodies.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_storage::fuzzing::record(bytes));
