//! The messages of version 1, as nodes of that version send them. The fixtures are in
//! `tests/fixtures/version-1`; a message of a later version belongs into `version-2`.

mod copies;
mod errors;
mod features;
mod folds;
mod jobs;
mod listings;
mod requests;

use super::*;
use crate::services::registry;
use crate::wire::reader::Malformed;
use ombak_fixtures::{FrozenMessages, numbers_in};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

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
    let meta = SiblingMeta {
        content_type: Some("text/plain".into()),
        last_modified: Some(UnixMicros(1_600_000_000_000_000)),
        vtag: Some("vtag".into()),
        user_meta: vec![("a name".into(), "a value".into())],
        expires_secs: Some(1_700_000_000),
        ..SiblingMeta::default()
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
    copies::check_version_2(&mut frozen);
    errors::check_version_2(&mut frozen);
    features::check_version_2(&mut frozen);
    folds::check_version_2(&mut frozen);
    jobs::check_version_2(&mut frozen);
    frozen.end();
}

/// The names of all fixtures of all versions. A service may have a file of its own in the folder of
/// a version, beside `wire.txt`. The files of members are tested where their messages are.
fn names() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for version in [1, 2] {
        let folder = format!("{}/tests/fixtures/version-{version}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let group = path.file_stem().unwrap().to_str().unwrap();
            if !group.starts_with("member-") {
                let frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), version, group);
                all.extend(frozen.names().map(|name| (name.to_owned(), frozen.bytes(name).unwrap().to_vec())));
            }
        }
    }
    all
}

/// A fixture's name begins with the name of its kind of message. Errors belong to no service.
#[test]
fn each_kind_of_message_has_a_fixture() {
    let kinds: BTreeSet<&str> = registry::messages().map(|kind| kind.name).chain(["error"]).collect();
    let names = names();
    let frozen: BTreeSet<&str> = names.iter().map(|(name, _)| name.split('/').next().unwrap()).collect();
    assert_eq!(kinds, frozen);
}

/// The text of a file below a folder that has this name.
fn texts_of(folder: &Path, name: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts_of(&path, name, found);
        } else if path.file_name().is_some_and(|file| file == name) {
            found.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// A decoder that no service names in its list of messages would not be tested with the others.
#[test]
fn each_decoder_belongs_to_a_kind_of_message() {
    let mut sources = vec![include_str!("../../mod.rs").to_owned()];
    texts_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "messages.rs", &mut sources);
    let words = sources.iter().flat_map(|source| source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let decoders = words.filter_map(|word| word.strip_prefix("decode_"));
    // These are of Erlang's terms, and of stored objects.
    let decoders: BTreeSet<&str> = decoders.filter(|name| !["with", "clock"].contains(name)).collect();
    assert!(sources.len() >= 4 && decoders.len() >= 17, "the decoders are not found any more: {decoders:?}");
    let kinds: BTreeSet<&str> = registry::messages().map(|kind| kind.name).chain(["error"]).collect();
    assert_eq!(decoders, kinds);
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
