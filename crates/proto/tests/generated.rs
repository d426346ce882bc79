//! The generated sources are what the descriptions of the messages generate. They are kept in the
//! repository because the compilers of the descriptions take longer to build than this crate.
//!
//! `OMBAK_GENERATE=1 cargo test -p ombak-proto --test generated` writes them after a change of
//! `messages`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const FILES: [&str; 5] = ["riak.proto", "riak_kv.proto", "riak_dt.proto", "riak_aae_fold.proto", "riak_search.proto"];

/// The number of a field's wire type in Protocol Buffers.
fn wire_type(field_type: &str) -> u8 {
    match field_type {
        "TYPE_DOUBLE" | "TYPE_FIXED64" | "TYPE_SFIXED64" => 1,
        "TYPE_STRING" | "TYPE_BYTES" | "TYPE_MESSAGE" => 2,
        "TYPE_FLOAT" | "TYPE_FIXED32" | "TYPE_SFIXED32" => 5,
        _ => 0,
    }
}

#[test]
fn the_generated_sources_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(FILES, [root.join("messages")]).unwrap();

    let messages: Vec<_> = descriptors.file.iter().flat_map(|file| &file.message_type).collect();
    let index_of = |type_name: &str| messages.iter().position(|m| type_name == format!(".riak.{}", m.name()));
    let mut schema = String::from("pub(crate) static MESSAGES: &[(&str, &[Field])] = &[\n");
    for message in &messages {
        writeln!(schema, "    ({:?}, &[", message.name()).unwrap();
        for field in &message.field {
            let wire = wire_type(field.r#type().as_str_name());
            let (number, inner) = (field.number(), index_of(field.type_name()));
            writeln!(schema, "        Field {{ number: {number}, wire: {wire}, message: {inner:?} }},").unwrap();
        }
        writeln!(schema, "    ]),").unwrap();
    }
    schema.push_str("];\n");

    let out = tempfile::tempdir().unwrap();
    prost_build::Config::new().bytes(["."]).enable_type_names().out_dir(out.path()).compile_fds(descriptors).unwrap();
    let riak = fs::read_to_string(out.path().join("riak.rs")).unwrap();

    for (name, text) in [("riak.rs", riak), ("schema.rs", schema)] {
        let path = root.join("src/generated").join(name);
        if std::env::var_os("OMBAK_GENERATE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap();
        assert!(found == text, "{} is out of date; the head of this test says how to write it", path.display());
    }
}
