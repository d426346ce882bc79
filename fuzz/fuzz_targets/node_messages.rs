//! A peer's bytes in the decoders of the messages between nodes. They are refused, or they decode
//! to a message that encodes to the same message again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_cluster::fuzzing::messages(bytes));
