//! A stranger's bytes in both sides of the handshake, with and without a valid greeting before
//! them. No bytes make a stranger a peer, and none make the node say more than its greeting.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, &[u8])| ombak_peer::fuzzing::handshake(input.1, input.0));
