//! What clients send as JSON and as Erlang's terms: a value comes back from its text, any text that
//! the standard allows is read, and jobs and the texts of terms do not crash.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ombak_types::etf::{Pretty, decode};
use ombak_types::json::{BadJsonKind, Json};

fuzz_target!(|bytes: &[u8]| {
    match Json::read(bytes) {
        Ok(value) => assert_eq!(Json::read(value.to_string().as_bytes()), Ok(value)),
        Err(bad) if matches!(bad.kind, BadJsonKind::NumberTooLarge | BadJsonKind::TooDeep) => {}
        Err(bad) => assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_err(), "{bad}"),
    }
    let _ = ombak_mapreduce::Job::from_json(bytes);
    if let Ok(term) = decode(bytes) {
        let _ = Pretty { term: &term, bytes_max: 4 << 10 }.to_string();
    }
    let _ = ombak_mapreduce::Job::from_erlang(bytes);
});
