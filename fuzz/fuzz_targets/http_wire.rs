//! A client's bytes in the decoders of HTTP requests. No bytes make a decoder panic or exceed its
//! bounds, and a request that arrives in pieces is read like one that arrives whole.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_api::fuzzing::http_requests(bytes));
