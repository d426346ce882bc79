//! Hint files: whole ones, and the content of a block.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_storage::fuzzing::hint(bytes));
