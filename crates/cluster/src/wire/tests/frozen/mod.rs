//! The messages of version 1, as nodes of that version send them. The fixtures are in
//! `tests/fixtures/version-1`; a message of a later version belongs into `version-2`.

mod copies;
mod errors;
mod jobs;
mod listings;
mod requests;

use super::*;
use crate::wire::reader::Malformed;
use ombak_fixtures::{FrozenMessages, numbers_in};
use std::collections::BTreeSet;
use std::fmt::Debug;

const COUNTER: NodeCounter = NodeCounter { boot: 7, counter: 300 };
const DIGEST: u64 = 0x0102_0304_0506_0708;

fn open(version: u32) -> FrozenMessages {
    FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), version, "wire")
}

/// The clock with one event of one actor.
fn a_clock() -> VectorClock {
    let mut clock = VectorClock::new();
    let _ = clock.increment(&Actor::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), UnixMicros(1_600_000_000_000_000));
    clock
}

/// An object with every part that an object can have.
fn an_object() -> Object {
    let meta = Metadata {
        content_type: Some("text/plain".into()),
        last_modified: Some(UnixMicros(1_600_000_000_000_000)),
        vtag: Some("vtag".into()),
        user_meta: vec![("a name".into(), "a value".into())],
        expires_secs: Some(1_700_000_000),
        ..Metadata::default()
    };
    let mut object = Object { clock: VectorClock::new(), siblings: Vec::new() };
    object.merge(Object { clock: a_clock(), siblings: vec![Sibling { value: "the value".into(), meta }] });
    object
}

fn check<T: Debug>(
    frozen: &mut FrozenMessages,
    name: &str,
    message: &T,
    encode: fn(&T) -> Body,
    decode: fn(&Bytes) -> Result<T, Malformed>,
) {
    frozen.check(name, message, |m| bytes_of(&encode(m)).to_vec(), |b| decode(&Bytes::copy_from_slice(b)));
}

#[test]
fn messages_have_the_bytes_of_version_1() {
    let mut frozen = open(1);
    requests::check_all(&mut frozen);
    copies::check_all(&mut frozen);
    listings::check_all(&mut frozen);
    errors::check_all(&mut frozen);
    frozen.end();
}

#[test]
fn messages_that_version_2_has_added_have_its_bytes() {
    let mut frozen = open(2);
    requests::check_version_2(&mut frozen);
    errors::check_version_2(&mut frozen);
    jobs::check_version_2(&mut frozen);
    frozen.end();
}

/// The names of all fixtures of all versions.
fn names() -> Vec<(String, Vec<u8>)> {
    let of = |frozen: FrozenMessages| {
        let names: Vec<String> = frozen.names().map(str::to_owned).collect();
        names.into_iter().map(|name| (name.clone(), frozen.bytes(&name).unwrap().to_vec())).collect::<Vec<_>>()
    };
    [of(open(1)), of(open(2))].concat()
}

/// A fixture's name begins with what its decoder is called.
#[test]
fn each_decoder_has_a_fixture() {
    let source = include_str!("../../mod.rs");
    let words = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let decoders: BTreeSet<&str> = words.filter_map(|word| word.strip_prefix("decode_")).collect();
    assert!(decoders.len() >= 17, "the decoders are not found any more: {decoders:?}");
    let names = names();
    let frozen: BTreeSet<&str> = names.iter().map(|(name, _)| name.split('/').next().unwrap()).collect();
    assert_eq!(decoders, frozen);
}

/// The second byte of a message is its kind.
#[test]
fn each_kind_of_errors_and_questions_has_a_fixture() {
    let names = names();
    for (prefix, source) in [
        ("error/", include_str!("../../error.rs")),
        ("transfer_question/", include_str!("../../transfer.rs")),
        ("reap_question/", include_str!("../../reaping.rs")),
    ] {
        let of_message = names.iter().filter(|(name, _)| name.starts_with(prefix));
        let frozen: BTreeSet<u8> = of_message.map(|(_, bytes)| bytes[1]).collect();
        let known: BTreeSet<u8> = numbers_in(source, "kind").into_keys().collect();
        assert_eq!(frozen, known, "{prefix}");
    }
}
