//! The files in which a node keeps its bucket types and properties, and a backup what is in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ombak_kv::fuzzing::{buckets_file, manifest};

fuzz_target!(|bytes: &[u8]| {
    buckets_file(bytes);
    manifest(bytes);
});
