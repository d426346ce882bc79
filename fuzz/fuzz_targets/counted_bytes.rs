//! What decoders of JSON, of Erlang's terms and of jobs count is never less than what they
//! allocate.

#![no_main]

#[path = "../../crates/mapreduce/tests/counting/mod.rs"]
mod counting;

use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fuzz_target!(|bytes: &[u8]| counting::check_all(bytes));
