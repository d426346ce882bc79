//! A client's bytes as the decoders of HTTP requests read them: no bytes make one panic or go
//! beyond its bounds, and a request that comes in pieces is read as if it came whole.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ombak_api::fuzzing::http_requests(bytes));
