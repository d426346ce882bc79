//! Frames of a peer that has proved itself, in a connection with small limits. The connection stays
//! within its limits, or ends.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_peer::fuzzing::connection(bytes));
