//! Generates the messages and, from the same descriptors, the table of wire types that `lenient`
//! reads.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

const FILES: [&str; 3] = ["riak.proto", "riak_kv.proto", "riak_dt.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=messages");
    let descriptors = protox::compile(FILES, ["messages"])?;

    let messages: Vec<_> = descriptors.file.iter().flat_map(|file| &file.message_type).collect();
    let index_of = |type_name: &str| messages.iter().position(|m| type_name == format!(".riak.{}", m.name()));
    let mut schema = String::from("pub(crate) static MESSAGES: &[(&str, &[Field])] = &[\n");
    for message in &messages {
        writeln!(schema, "    ({:?}, &[", message.name())?;
        for field in &message.field {
            let wire = wire_type(field.r#type().as_str_name());
            let inner = index_of(field.type_name());
            writeln!(schema, "        Field {{ number: {}, wire: {wire}, message: {inner:?} }},", field.number())?;
        }
        writeln!(schema, "    ]),")?;
    }
    schema.push_str("];\n");

    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    std::fs::write(out.join("schema.rs"), schema)?;
    prost_build::Config::new().bytes(["."]).enable_type_names().compile_fds(descriptors)?;
    Ok(())
}

fn wire_type(field_type: &str) -> u8 {
    match field_type {
        "TYPE_DOUBLE" | "TYPE_FIXED64" | "TYPE_SFIXED64" => 1,
        "TYPE_STRING" | "TYPE_BYTES" | "TYPE_MESSAGE" => 2,
        "TYPE_FLOAT" | "TYPE_FIXED32" | "TYPE_SFIXED32" => 5,
        _ => 0,
    }
}
