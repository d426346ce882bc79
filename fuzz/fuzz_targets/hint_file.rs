//! Hint files, whole ones and what is in a block of one.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_storage::fuzzing::hint(bytes));
