//! Tests of refused generators: the error must say what would be right.

use super::*;
use crate::config::Settings;

#[test]
fn key_generators_that_cannot_be_are_refused_with_what_would_be_right() {
    for (text, parts) in [
        ("{uniform_int, 0}", ["{uniform_int, Max}", "from 1 to 9,223,372,036,854,775,807, not 0"]),
        ("{uniform_int, many}", ["Max must be an integer", "not many"]),
        ("{uniform_int, 9223372036854775807, 2}", ["{uniform_int, Start, N}", "from 1 to 1, not 2"]),
        ("{uniform_int}", ["{uniform_int, Max}", "{uniform_int, Start, N}"]),
        ("{eightytwenty_int, 4}", ["from 5 to", "not 4"]),
        ("{uniform, 10}", ["there is no key generator {uniform, 10}", "there are {uniform_int, Max}"]),
        ("{sha256, uuid_v4}", ["there is no key generator", "{{crypto_hash, Type}, G}"]),
        ("uuid_v5", ["uuid_v5; there are uuid_v4", "{uniform_int, Max}"]),
        ("{function, my_keys, new, []}", ["my_keys:new is Erlang code", "{uniform_int, Max}"]),
        ("{int_to_bin_bigendian, uuid_v4}", ["G must give integers", "uuid_v4 gives binaries"]),
        ("{{int_to_bin_bigendian, 12}, {uniform_int, 1}}", ["multiple of 8", "12"]),
        ("{{int_to_bin_bigendian, 0}, {uniform_int, 1}}", ["Bits", "from 8 to 8,192"]),
        ("{str_to_bin, {uniform_int, 1}}", ["G must give strings", "{int_to_str, G}"]),
        ("{str_to_bin, uuid_v4}", ["G must give strings", "{bin_to_str, G}"]),
        ("{bin_to_str, \"text\"}", ["G must give binaries", "{str_to_bin, G}"]),
        ("{concat_binary, <<\"a\">>, {uniform_int, 1}}", ["G2 must give binaries", "{int_to_bin_bigendian, G}"]),
        ("{base64, {uniform_int, 1}}", ["G must give binaries or strings", "{to_binstr, \"~w\", G}"]),
        ("{{crypto_hash, sha3}, uuid_v4}", ["one of md4, md5, ripemd160, sha, sha224", "not sha3"]),
        ("{to_binstr, \"~s\", {uniform_int, 1}}", ["{to_binstr, Format, G}", "~w or ~b"]),
        ("{to_binstr, w, {uniform_int, 1}}", ["Format must be a string", "not w"]),
        ("{file_line_bin, 1}", ["Path must be a string", "not 1"]),
        ("{valgen, {fixed_bin, -1}}", ["{fixed_bin, Size}", "not -1"]),
        ("[a]", ["must be a string", "[a]"]),
        ("1.5", ["there is no key generator 1.5", "uuid_v4"]),
    ] {
        let error = key_spec(text).unwrap_err().to_string();
        assert!(
            error.starts_with("key_generator: ") && parts.iter().all(|part| error.contains(part)),
            "{text}: {error}"
        );
    }
}

#[test]
fn value_generators_that_cannot_be_are_refused_with_what_would_be_right() {
    for (text, parts) in [
        ("{fixed_bin, 1.5}", ["Size must be an integer from 0", "not 1.5"]),
        ("{fixed_bin, 1000000000}", ["to 268,435,456", "not 1000000000"]),
        ("{fixed_bin, 1, 256}", ["Byte must be", "from 0 to 255, not 256"]),
        ("{fixed_char, 1000000000}", ["to 16,777,216", "not 1000000000"]),
        ("{exponential_bin, 1, 0}", ["Mean must be a number above 0", "not 0"]),
        ("{uniform_bin, 10, 10}", ["Max must be an integer from 11", "not 10"]),
        ("{uniform_int, 10, 10}", ["Max must be an integer from 11", "not 10"]),
        ("{semi_compressible, 8000, 8000, 10, 2}", ["XLProb is a probability", "not 2"]),
        ("{semi_compressible, 8000, 8000, 0, 0.1}", ["XLMult must be a number above 0", "not 0"]),
        ("{semi_compressible, 8000, 8000, 1000000, 0.1}", ["16,000,000,000 bytes", "268,435,456"]),
        (
            "{semi_compressible, 8000, 8000}",
            ["does not have the form", "{semi_compressible, Min, Mean, XLMult, XLProb}"],
        ),
        ("{fixed_bim, 10}", ["there are {fixed_bin, Size}, {fixed_bin, Size, Byte}", "{uniform_int, Max}"]),
        (
            "{function, basho_bench_driver_riakc_pb, mapred_valgen, []}",
            ["mapred_valgen is Erlang code", "{fixed_bin, Size}"],
        ),
        ("fixed_bin", ["does not have the form", "{fixed_bin, Size}"]),
    ] {
        let error = value_spec(text).unwrap_err().to_string();
        assert!(
            error.starts_with("value_generator: ") && parts.iter().all(|part| error.contains(part)),
            "{text}: {error}"
        );
    }
}

#[test]
fn generators_nest_only_so_deep() {
    let nested = |depth| format!("{}uuid_v4{}", "{base64, ".repeat(depth), "}".repeat(depth));
    assert!(key_spec(&nested(32)).is_ok());
    let error = key_spec(&nested(33)).unwrap_err().to_string();
    assert!(error.contains("more than 32 deep"), "{error}");
}

#[test]
fn files_that_are_not_there_stop_the_start() {
    let values = value_spec("{fixed_bin, 1}").unwrap();
    let keys = key_spec("{concat_binary, <<\"a\">>, {file_line_bin, \"/nowhere/keys\"}}").unwrap();
    let error = Generators::new(&keys, &values, &small()).unwrap_err().to_string();
    assert!(error.starts_with("key_generator: {file_line_bin, Path}: /nowhere/keys: "), "{error}");
    let settings = PoolSettings { blob_file: Some("/nowhere/blob".into()), ..small() };
    let error = Generators::new(&key_spec("uuid_v4").unwrap(), &values, &settings).unwrap_err().to_string();
    assert!(error.starts_with("value_generator_blob_file: /nowhere/blob: cannot be read"), "{error}");
}

#[test]
fn pool_settings_are_read_or_refused() {
    let read = |pairs: &[(&str, &str)]| {
        let mut settings = Settings::default();
        pairs.iter().for_each(|(key, text)| settings.set(*key, Term::parse(text).unwrap()));
        PoolSettings::read(&settings, SEED)
    };
    assert_eq!(read(&[]), Ok(PoolSettings::new(SEED)));
    assert_eq!(PoolSettings::new(SEED).source_bytes, 100_663_296);
    let set = read(&[
        ("value_generator_source_size", "1024"),
        ("value_generator_blob_file", "\"blob\""),
        ("sequential_int_state_dir", "\"/state\""),
    ]);
    let expected = PoolSettings {
        source_bytes: 1024,
        blob_file: Some("blob".into()),
        state_dir: Some("/state".into()),
        seed: SEED,
        warnings: vec![],
    };
    assert_eq!(set, Ok(expected));
    assert_eq!(read(&[("sequential_int_state_dir", "\"\"")]), Ok(PoolSettings::new(SEED)));
    let relative = read(&[("sequential_int_state_dir", "\"state\"")]).unwrap();
    assert_eq!(relative.state_dir, None);
    assert!(relative.warnings[0].contains("not an absolute path"), "{:?}", relative.warnings);
    for (key, text) in [
        ("value_generator_source_size", "0"),
        ("value_generator_source_size", "5000000000"),
        ("value_generator_blob_file", "blob"),
        ("sequential_int_state_dir", "1"),
    ] {
        let error = read(&[(key, text)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key}: must be ")), "{error}");
    }
}

#[test]
fn withdrawn_generators_run_with_a_warning() {
    let all = generators("{int_to_bin, {uniform_int, 10}}", "{fixed_bin, 1}");
    assert!(all.warnings()[0].contains("int_to_bin_bigendian with 32 bits"), "{:?}", all.warnings());
    let all = generators("{int_to_bin_bigendian, {uniform_int, 10}}", "{fixed_bin, 1}");
    assert!(all.warnings().is_empty());
}
