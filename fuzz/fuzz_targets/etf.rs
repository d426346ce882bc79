//! Erlang's external term format: a term that was decoded is the same after it is encoded and
//! decoded again, within the decoder's limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ombak_types::etf;

fuzz_target!(|bytes: &[u8]| {
    let Ok(term) = etf::decode(bytes) else { return };
    let _ = term.to_string();
    let again = etf::decode(&etf::encode(&term)).expect("what was written is read");
    assert_eq!(term, again);
});
