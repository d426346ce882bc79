//! The file with a node's bucket types and properties, and the manifest of a backup.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ombak_backup::check_manifest;
use ombak_kv::fuzzing::buckets_file;

fuzz_target!(|bytes: &[u8]| {
    buckets_file(bytes);
    check_manifest(bytes);
});
