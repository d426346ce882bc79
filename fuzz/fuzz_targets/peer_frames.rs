//! A peer's bytes in the decoder of frames. They end in frames that encode to the same bytes, or in
//! an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_peer::fuzzing::frames(bytes));
